// The tokens of a text, or of a pair of texts, as an encoder reads them: with the special tokens of its tokenizer,
// and cut to its longest sequence as Hugging Face's truncation does.
//
//   a text   [CLS] text [SEP]                 loses its end before the closing special tokens
//   a pair   [CLS] first [SEP] second [SEP]   the longer of the two loses its end, until both are equally long
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/model_folder.h"

namespace mh {

struct TextTokens {
  std::vector<int32_t> ids;
  std::vector<int32_t> types = {};  // of each token; empty: all of type 0
  /// Of each token of a pair, in its own text (Encoding::offsets).
  std::vector<std::pair<int32_t, int32_t>> offsets = {};
  size_t uncut = 0;  // tokens that there were before they were cut
};

class TextReader {
 public:
  /// longest: tokens of a sequence, special tokens among them. `folder` must outlive this. Throws FileError when
  /// it has no tokenizer.
  TextReader(const ModelFolder& folder, size_t longest);

  /// Throws FormatError on a text that is not UTF-8.
  TextTokens read(const std::string& text) const;
  /// Two texts as one sequence, with the token types of the tokenizer's template, if the model has types. Throws
  /// UsageError as check_pairs() does, FormatError on a text that is not UTF-8.
  TextTokens read(const std::string& first, const std::string& second) const;
  /// Throws UsageError, saying why, when the model does not read two texts as one sequence: only encoders do
  /// whose tokenizer has a template for a pair and whose longest sequence has room for one.
  void check_pairs() const;

 private:
  const ModelFolder& folder_;
  const Tokenizer& tokenizer_;
  size_t longest_;
  size_t closing_;  // special tokens behind a text
  bool has_types_;  // of tokens
};

/// The sequences of pairs of texts, and the types and places of their tokens.
struct PairsRead {
  std::vector<std::vector<int32_t>> ids, types;
  std::vector<std::vector<std::pair<int32_t, int32_t>>> offsets;
};
/// Reads all pairs; `remark`, which may be null, hears how many were cut. Throws as TextReader does, and UsageError
/// unless there are as many second texts.
PairsRead read_pairs(const ModelFolder& folder, const std::vector<std::string>& firsts,
                     const std::vector<std::string>& seconds,
                     const std::function<void(const std::string&)>& remark);

/// Throws UsageError unless there are as many second texts as first ones.
void check_second_texts(size_t seconds, size_t firsts);

/// How many tokens stay of two texts that have so many, when there is room for `room` in all: the shorter stays
/// whole if that leaves the longer at least as many, else both get half, the longer (of equal ones the second) one
/// more of an odd number. That is the strategy "longest_first" of Hugging Face.
std::pair<size_t, size_t> shares_of_pair(size_t first, size_t second, size_t room);

}  // namespace mh
