// The Moses tokenizer's rules for English and German (Koehn et al. 2007, tokenizer.perl -no-escape, hyphens
// kept): papers that report "tokenized BLEU" mean these words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh {

enum class MosesLanguage { kEnglish, kGerman };

/// The words of `line`: special characters stand alone, commas unless between digits, runs of periods
/// together, English contractions split before the apostrophe ("do n't" stays "don 't"), and a word's final
/// period unless the word is an abbreviation or the next word begins in lower case. REQUIRES: `line` is
/// UTF-8.
std::vector<std::string> tokenize_moses(std::string_view line, MosesLanguage language);

/// Does a period after `word` belong to it?
enum class PeriodAfter { kSplits, kBelongs, kBelongsBeforeNumber };
PeriodAfter period_after(std::string_view word, MosesLanguage language);

}  // namespace mh
