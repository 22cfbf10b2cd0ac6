#include "lab/grammar/english_morphology.h"

namespace mh::grammar {

std::string english_third_person(std::string_view base) {
  const std::string_view vowels = "aeiou";
  const auto ends = [&](std::string_view end) { return base.ends_with(end); };
  if (ends("y") && base.size() > 1 && vowels.find(base[base.size() - 2]) == std::string_view::npos) {
    return std::string(base.substr(0, base.size() - 1)) + "ies";
  }
  const bool hisses = ends("s") || ends("sh") || ends("ch") || ends("x") || ends("z") || ends("o");
  return std::string(base) + (hisses ? "es" : "s");
}

std::string english_be(bool past, Agreement agreement) {
  if (agreement.number == Number::kPlural) return past ? "were" : "are";
  if (past) return "was";
  return agreement.first_person ? "am" : "is";
}

std::string english_indefinite(std::string_view next) {
  const bool vowel = !next.empty() && std::string_view("aeiou").find(next[0]) != std::string_view::npos;
  return vowel ? "an" : "a";
}

}  // namespace mh::grammar
