// Fills masked words in: "Paris is the [MASK] of France." -> capital.
//
//   const mh::ModelFolder folder = mh::load_model_folder("bert-base-uncased");
//   mh::fill_words(folder, {"Paris is the [MASK] of France."}).at(0).at(0).at(0).word;   // "capital"
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "multihead/folders/mask_token.h"
#include "multihead/folders/model_folder.h"
#include "multihead/io/config.h"
#include "multihead/nn/context.h"
#include "multihead/text/long_lines.h"

namespace mh {

/// A word that may stand in a mask's place.
struct FilledWord {
  int32_t token = 0;
  std::string word;        // what the token spells, without a space before it
  double probability = 0;  // softmax over the vocabulary at the mask's place
};

/// For each mask; the vocabulary is asked for so many at once.
inline constexpr int32_t kMostWords = 256;

struct FillOptions {
  int32_t words = 5;                // K, the best words for each mask
  int64_t max_batch_tokens = 4096;  // most tokens of a batch; results do not depend on it
  Sites* sites = nullptr;
  /// The second text of each text, which the model reads as one sequence with it; empty: there are none.
  std::vector<std::string> pairs = {};
  LinesFrom from = {.one = "text"};  // what errors and remarks call the texts
  bool strict = false;               // refuse a text that is too long, which is cut otherwise
  std::function<void(const std::string&)> remark = nullptr;  // hears how many texts were cut

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Text";
    v("words", words, {.low = 1, .high = kMostWords},
      {.group = kGroup, .help = "How many words to show for each mask"});
    v("strict", strict, {},
      {.group = kGroup, .help = "Refuse a text that is longer than the model reads; it is cut otherwise"});
    v("max_batch_tokens", max_batch_tokens, {.low = 1},
      {.group = kGroup, .help = "Most tokens in a batch", .rare = true});
  }
};

/// For each text and each of its masks, in order, the K most probable words, the best first. Each mask is
/// filled by itself, while the others stay masked. The texts (of a pair one or both) say mask_token() where a word
/// is missing. A text of more tokens than the model reads loses its end, of a pair the longer text
/// (text_tokens.h). Throws UsageError when the model has no head for masked words, on pairs that it does not read
/// or that are not as many as texts, and on invalid options; FormatError on a text that is not UTF-8, that
/// has no mask, or that is cut before one, and with `strict` on one that is too long; FileError when the folder has
/// no tokenizer.
std::vector<std::vector<std::vector<FilledWord>>> fill_words(const ModelFolder& folder,
                                                             const std::vector<std::string>& texts,
                                                             const FillOptions& options = {});

}  // namespace mh
