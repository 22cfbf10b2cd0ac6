// Tokenizers: text to token ids and back. They read and write Hugging Face's tokenizer.json.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// A text as tokens; the three lists are equally long.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<std::string> tokens;
  /// Characters (code points) [first, second) of the original text; {0, 0} for tokens the template added.
  std::vector<std::pair<int32_t, int32_t>> offsets;
};

/// A whole pipeline, immutable: copies are cheap and share it, and every method is thread-safe.
class Tokenizer {
 public:
  /// Reads tokenizer.json: WordLevel and BPE models. Throws FormatError in one line that starts with
  /// `file_name_for_errors` on anything malformed, contradictory or not supported (naming the type).
  /// Truncation and padding settings in the file are ignored: nothing is dropped silently.
  static Tokenizer from_json(std::string_view json, std::string_view file_name_for_errors);
  /// Throws FormatError on parts that contradict each other: ids must be 0 … n-1 without holes.
  explicit Tokenizer(TokenizerParts parts);

  /// What Hugging Face `tokenizers` opens with the same ids, offsets and decoding.
  std::string to_json() const;

  /// Throws FormatError when `text` is not UTF-8.
  Encoding encode(std::string_view text, bool add_special_tokens = true) const;
  /// The ids alone, faster.
  std::vector<int32_t> encode_ids(std::string_view text, bool add_special_tokens = true) const;
  /// Ids out of range are left out, as in Hugging Face.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = true) const;

  /// The vocabulary with the added tokens: highest id + 1.
  int32_t size() const;
  std::optional<int32_t> id_of(std::string_view token) const;
  /// Throws UsageError on ids out of range.
  const std::string& token_of(int32_t id) const;
  /// The token for what the vocabulary lacks.
  std::optional<int32_t> unknown_id() const;

 private:
  struct Pipeline;
  std::shared_ptr<const Pipeline> pipeline_;
};

}  // namespace mh
