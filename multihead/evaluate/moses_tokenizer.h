// The Moses tokenizer's rules for English and German (Koehn et al. 2007, tokenizer.perl -no-escape, hyphens
// kept): papers that report "tokenized BLEU" usually count these words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh {

enum class MosesLanguage { kEnglish, kGerman };

/// Returns the words of `line`. Words of their own are: special characters, commas unless between digits,
/// runs of periods, what follows the apostrophe of an English contraction ("don't" becomes "don 't"), and a
/// word's final period, unless the word is an abbreviation or the next word begins in lower case. REQUIRES:
/// `line` is UTF-8.
std::vector<std::string> tokenize_moses(std::string_view line, MosesLanguage language);

/// Tells whether a period after `word` belongs to it.
enum class PeriodAfter { kSplits, kBelongs, kBelongsBeforeNumber };
PeriodAfter period_after(std::string_view word, MosesLanguage language);

}  // namespace mh
