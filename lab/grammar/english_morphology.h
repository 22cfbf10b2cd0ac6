// Inflects English words.
#pragma once

#include <string>
#include <string_view>

#include "lab/grammar/lexicon.h"

namespace mh::grammar {

/// Person and number, in which a finite verb agrees with its subject.
struct Agreement {
  bool first_person = false;
  Number number = Number::kSingular;
  bool third_singular() const { return !first_person && number == Number::kSingular; }
};

/// "sees", "carries", "goes": the third person singular of the present.
std::string english_third_person(std::string_view base);
/// "am", "is", "are", "was", "were".
std::string english_be(bool past, Agreement agreement);
/// "a" or "an", by the first letter of the next word.
std::string english_indefinite(std::string_view next);

}  // namespace mh::grammar
