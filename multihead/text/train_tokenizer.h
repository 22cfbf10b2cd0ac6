// Learns tokenizers from plain text.
//
// The ids come in a fixed order: 0 end token "</s>", 1 unknown token "<unk>", 2 pad token "<pad>", then (bpe)
// the alphabet by code point and the merged pieces in the order learned, or (word level) the words by falling
// count. The same lines in the same order give the same tokenizer, and the same bytes of tokenizer.json.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "multihead/io/config.h"
#include "multihead/text/tokenizer.h"

namespace mh {

/// The ids of the special tokens in every tokenizer learned here.
inline constexpr int32_t kEndId = 0;
inline constexpr int32_t kUnknownId = 1;
inline constexpr int32_t kPadId = 2;

enum class Normalization { kNone, kNfc, kNfkc };

namespace detail {
inline constexpr int32_t kLargestVocabulary = 1 << 24;
/// What both kinds of tokenizers are learned with. The smallest vocabulary has one token besides the special ones.
template <class V, class Options>
void visit_learned(V& v, Options& options, const char* group) {
  v("vocabulary_size", options.vocabulary_size, {.low = kPadId + 2, .high = kLargestVocabulary},
    {.group = group, .help = "Largest vocabulary to learn, in tokens"});
  v("lowercase", options.lowercase, {},
    {.group = group, .help = "Lower-case all text, here and whenever the tokenizer is used"});
  v("normalization", options.normalization,
    {{"nfkc", Normalization::kNfkc}, {"nfc", Normalization::kNfc}, {"none", Normalization::kNone}},
    {.group = group, .help = "Unicode normal form of the text"});
}
inline constexpr const char* kLearnGroup = "Learn a tokenizer";
}  // namespace detail

struct BpeOptions {
  int32_t vocabulary_size = 8000;  ///< at most; little text gives fewer
  bool lowercase = false;
  Normalization normalization = Normalization::kNfkc;
  int32_t alphabet_limit = 1000;            ///< characters kept, the most frequent; others become unknown
  int64_t least_pair_count = 2;             ///< pairs seen less often are not merged
  std::string name = "text to learn from";  ///< what errors call the lines

  template <class V>
  void visit(V& v) {
    detail::visit_learned(v, *this, detail::kLearnGroup);
    v("alphabet_limit", alphabet_limit, {.low = 1, .high = detail::kLargestVocabulary},
      {.group = detail::kLearnGroup,
       .help = "Most characters that are kept, the most frequent; others become unknown",
       .rare = true});
    v("least_pair_count", least_pair_count, {.low = 1},
      {.group = detail::kLearnGroup, .help = "Do not merge pairs that occur less often", .rare = true});
  }
};
/// Byte-pair encoding (Sennrich et al. 2016) over words that start with "▁" in place of the space;
/// each punctuation character is its own word, so that "garden" and "garden." share a piece. To learn one
/// vocabulary for two languages, pass the lines of both.
///
/// encode() appends "</s>". A run of whitespace, or a literal "▁", counts as one space and is dropped at
/// the ends of the text. decode(encode(x)) returns x normalised in this way, unless x has unknown
/// characters. Throws UsageError on options out of range, FormatError when a line is not UTF-8 or there is
/// nothing to learn from.
Tokenizer train_bpe(std::span<const std::string> lines, const BpeOptions& options = {});

struct WordLevelOptions {
  int32_t vocabulary_size = 50'000;  ///< at most; rarer words become unknown
  bool lowercase = false;
  Normalization normalization = Normalization::kNfkc;
  int64_t least_count = 1;
  std::string name = "text to learn from";

  template <class V>
  void visit(V& v) {
    detail::visit_learned(v, *this, detail::kLearnGroup);
    v("least_count", least_count, {.low = 1},
      {.group = detail::kLearnGroup, .help = "Words that occur less often become unknown", .rare = true});
  }
};
/// A vocabulary of whole words, split at whitespace. encode() appends "</s>"; errors as in train_bpe.
Tokenizer train_word_level(std::span<const std::string> lines, const WordLevelOptions& options = {});

}  // namespace mh
