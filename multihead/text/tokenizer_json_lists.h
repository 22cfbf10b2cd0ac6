// Reads the long lists of a tokenizer.json, tokens and merges, entry by entry. A vocabulary of nlohmann's values would
// take some twenty times its file's size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "multihead/io/strict_json.h"
#include "multihead/text/token_ids.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Is given the entries in the file's order.
class TokenizerLists {
 public:
  virtual ~TokenizerLists() = default;
  virtual void token(std::string_view text, int32_t id) = 0;
  virtual void piece(std::string_view text, double score, int32_t id) = 0;  ///< of a Unigram
  virtual void merge(std::string_view left, std::string_view right) = 0;
  virtual void added_token(AddedToken token) = 0;
};

/// Returns the document, in which these lists are empty. Throws FormatError as parse_json_strictly does, naming the
/// path of an entry of the wrong form, and whatever `lists` throws.
nlohmann::json read_tokenizer_document(std::string_view json, std::string_view file, TokenizerLists& lists);

/// Puts the entries into the parts of a tokenizer.
class KeptLists : public TokenizerLists {
 public:
  explicit KeptLists(TokenizerParts& parts) : parts_(parts) {}
  void token(std::string_view text, int32_t id) override;
  void piece(std::string_view text, double score, int32_t id) override;
  void merge(std::string_view left, std::string_view right) override;
  void added_token(AddedToken token) override;

 private:
  TokenizerParts& parts_;
};

/// Checks the entries against each other and keeps none, in 40 MiB at most.
class CheckedLists : public TokenizerLists {
 public:
  void token(std::string_view text, int32_t id) override;
  void piece(std::string_view text, double score, int32_t id) override;
  void merge(std::string_view left, std::string_view right) override;
  void added_token(AddedToken token) override;

  /// Call it when the whole document has been read, with the model without its lists. Throws FormatError on what only
  /// the whole shows. Returns whether the document must be read once more: a merge stood before a token or a
  /// prefix that it may need.
  bool finish(const TokenModel& model);

  const TokenIds& ids() const { return ids_; }
  size_t pieces() const { return pieces_; }

 private:
  TokenIds ids_;
  std::string prefix_;
  bool again_ = false;  // the second time: only merges are checked
  bool token_after_merge_ = false;
  size_t merges_ = 0, pieces_ = 0;
  std::string problem_;  // of the first merge that is refused: the rest of the document may help it
};

}  // namespace mh
