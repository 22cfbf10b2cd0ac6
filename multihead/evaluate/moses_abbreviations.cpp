// Abbreviations: words whose final period does not end a sentence. The lists are this project's own and
// hold what is common in either language. Those of the original differ in rare words; docs/verbs/bleu.md
// says how often results agree.
#include <string_view>
#include <unordered_set>

#include "multihead/evaluate/moses_tokenizer.h"

namespace mh {
namespace {

using Words = std::unordered_set<std::string_view>;

// clang-format off
const Words& english() {
  static const Words words{
      // people
      "Mr", "Mrs", "Ms", "Dr", "Drs", "Prof", "Rev", "Hon", "Messrs", "Mme", "Mlle", "Sr", "Fr", "St",
      // ranks and offices
      "Adm", "Brig", "Capt", "Cmdr", "Col", "Cpl", "Gen", "Gov", "Insp", "Lt", "Maj", "Pvt", "Rep", "Sen",
      "Sgt", "Supt",
      // months
      "Jan", "Feb", "Mar", "Apr", "Jun", "Jul", "Aug", "Sep", "Sept", "Oct", "Nov", "Dec",
      // the rest
      "Bros", "Corp", "Nos", "vs", "v"};
  return words;
}
// A period belongs to these when a number follows: No. 7, pp. 12-19.
const Words& english_before_number() {
  static const Words words{"No", "Art", "pp"};
  return words;
}

const Words& german() {
  static const Words words{
      // people
      "Hr", "Hrn", "Fr", "Frl", "Dr", "Prof", "Mr", "Mrs", "Ms", "Mme", "St", "Sr", "Gen", "Hon",
      // numbers and amounts
      "Nr", "Nrn", "No", "Mio", "Mrd", "Std", "ca", "Ca", "pp", "ff",
      // in running text
      "bzw", "bzgl", "dgl", "ebd", "etc", "evtl", "gem", "ggf", "inkl", "sog", "usf", "usw", "vgl", "vs",
      "zzgl",
      // laws and books
      "Abs", "Art", "Bd", "Buchst", "Hrsg", "Jh", "Kap", "Chr",
      // a baronet to the original, also where it is a beard: kept, since its words are what is asked for
      "Bart",
      // numerals of rulers; one letter is an initial anyway
      "II", "III", "IV", "VI", "VII", "VIII", "IX", "XI", "XII", "XIII", "XIV", "XV", "XVI", "XVII", "XVIII",
      "XIX", "XX"};
  return words;
}
// clang-format on

bool is_ascii_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

// 1. to 99.: German writes ordinals with a period.
bool is_german_ordinal(std::string_view word) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (word.empty() || word.size() > 2 || word[0] == '0') return false;
  return digit(word[0]) && (word.size() == 1 || digit(word[1]));
}

}  // namespace

PeriodAfter period_after(std::string_view word, MosesLanguage language) {
  if (word.size() == 1 && is_ascii_upper(word[0])) return PeriodAfter::kBelongs;  // an initial
  if (language == MosesLanguage::kGerman) {
    if (word.size() == 1 && word[0] >= 'a' && word[0] <= 'z') return PeriodAfter::kBelongs;
    return is_german_ordinal(word) || german().contains(word) ? PeriodAfter::kBelongs : PeriodAfter::kSplits;
  }
  if (english().contains(word)) return PeriodAfter::kBelongs;
  return english_before_number().contains(word) ? PeriodAfter::kBelongsBeforeNumber : PeriodAfter::kSplits;
}

}  // namespace mh
