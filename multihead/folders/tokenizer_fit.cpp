#include "multihead/folders/tokenizer_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "multihead/base/error.h"
#include "multihead/text/in_quotes.h"

namespace mh {
namespace {

// Rows that no text reaches, as multilingual MiniLM has them: 250,037 for 250,002 tokens.
bool is_nearly_all(int32_t tokenizer, int32_t vocabulary) {
  constexpr int32_t kPart = 1000;
  return tokenizer <= vocabulary && vocabulary - tokenizer <= vocabulary / kPart;
}

bool predicts(const ModelFacts& facts) {
  return facts.vocabulary > 0;
}

}  // namespace

bool is_rounded_up(int64_t tokens, int64_t vocabulary) {
  constexpr int64_t kStep = 8, kLargestStep = 128, kPart = 50;
  const int64_t more = vocabulary - tokens;
  return vocabulary % kStep == 0 && more >= 0 && (more < kLargestStep || more <= vocabulary / kPart);
}

std::vector<std::string> tokenizer_mismatches(const Tokenizer& tokenizer, int32_t vocabulary,
                                              const ModelFacts& facts, const std::string& end,
                                              const std::string& pad) {
  std::vector<std::string> clauses;
  const bool fits = tokenizer.size() == vocabulary || is_rounded_up(tokenizer.size(), vocabulary) ||
                    (!predicts(facts) && is_nearly_all(tokenizer.size(), vocabulary));
  if (!fits) clauses.push_back(fmt::format("it has {} tokens, the model {}", tokenizer.size(), vocabulary));
  const auto check = [&](const char* which, const std::string& token, int32_t expected) {
    if (token.empty()) return;
    const auto id = tokenizer.id_of(token);
    if (!id) {
      clauses.push_back(fmt::format("it has no {} token \"{}\"", which, token));
    } else if (*id != expected) {
      clauses.push_back(
          fmt::format("its {} token \"{}\" has id {}, the model's has {}", which, token, *id, expected));
    }
  };
  check("end", end, facts.eos_id);
  check("pad", pad, facts.pad_id);
  return clauses;
}

void check_tokenizer(const Tokenizer& tokenizer, const std::string& file, int32_t vocabulary,
                     const ModelFacts& facts, const std::optional<SpecialTokens>& special) {
  SpecialTokens names = special.value_or(SpecialTokens{});
  if (!special && !tokenizer.id_of(names.end)) names.end.clear();
  if (!special && !tokenizer.id_of(names.pad)) names.pad.clear();
  const bool encoder = !predicts(facts), causal = facts.source_vocabulary == 0;
  // A causal model may pad with nothing, and end with other tokens than its tokenizer says, e.g. in chats. An
  // encoder ends nothing, and nothing is padded here.
  if (encoder || causal) names.end = names.pad = "";
  auto mismatches = tokenizer_mismatches(tokenizer, vocabulary, facts, names.end, names.pad);
  const auto need = [&](const char* which, const std::string& token) {
    if (!token.empty() && !tokenizer.id_of(token))
      mismatches.push_back(fmt::format("it has no {} token {}", which, in_quotes(token)));
  };
  need("unknown", names.unknown);
  if (encoder) {
    need("opening", names.opening);
    need("closing", names.closing);
  }
  if (mismatches.empty()) return;
  // Tokens that were added after the training of a tokenizer may stand in a file beside it alone.
  const char* const beside =
      tokenizer.size() < vocabulary ? ", and the files beside it that list added tokens" : "";
  throw FormatError(fmt::format(
      "{} does not match the model: {}; put the tokenizer there that the model was trained with{}", file,
      fmt::join(mismatches, "; "), beside));
}

}  // namespace mh
