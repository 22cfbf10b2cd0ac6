// The words of byte-level tokenizers. Each model family has a regular expression for them; as no general
// engine is needed, each is a function here that does what the expression says, in linear time.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "multihead/text/aligned_text.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Cuts the text into words, which cover it. All parts match.
std::vector<Part> words_by_rule(std::string_view text, WordRule rule);

/// The regular expression of a rule, as tokenizer.json has it, and the rule of an expression.
std::string_view expression_of(WordRule rule);
std::optional<WordRule> word_rule_of(std::string_view expression);

}  // namespace mh
