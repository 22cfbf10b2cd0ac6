#include "multihead/generate/stopped_text.h"

#include <algorithm>

namespace mh {
namespace {

// Bytes of a character besides its last: what a first token that is looked at may have begun.
constexpr size_t kPartOfCharacter = 3;
// Tokens before those that are looked at, for decoders that write the first token of a text otherwise.
constexpr size_t kBefore = 4;

/// How many of the last tokens to take so that `count` of them spell something, or all.
size_t last_that_spell(const Tokenizer& tokenizer, std::span<const int32_t> tokens, size_t count) {
  size_t taken = 0;
  while (taken < tokens.size() && count > 0) {
    ++taken;
    if (!tokenizer.decode_known(tokens.subspan(tokens.size() - taken, 1)).empty()) --count;
  }
  return taken;
}

}  // namespace

bool stops_at_last(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                   std::span<const int32_t> tokens, const std::vector<std::string>& stop) {
  size_t longest = 0;
  for (const std::string& string : stop) longest = std::max(longest, string.size());
  if (longest == 0) return false;
  // A token that spells something spells a byte or more.
  const size_t looked_at = last_that_spell(tokenizer, tokens, longest + kPartOfCharacter);
  const std::span<const int32_t> earlier = tokens.first(tokens.size() - looked_at);
  const std::span<const int32_t> recent = earlier.last(last_that_spell(tokenizer, earlier, kBefore));
  const std::span<const int32_t> prompts_end =
      prompt.last(recent.size() < earlier.size() ? 0 : last_that_spell(tokenizer, prompt, kBefore));
  std::vector<int32_t> before(prompts_end.begin(), prompts_end.end());
  before.insert(before.end(), recent.begin(), recent.end());
  StoppedText text(tokenizer, before, stop);
  for (const int32_t token : tokens.last(looked_at)) text.add(token);
  return text.stopped();
}

}  // namespace mh
