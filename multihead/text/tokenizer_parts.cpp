#include "multihead/text/tokenizer_parts.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/text/character_map.h"
#include "multihead/text/in_quotes.h"

namespace mh {

void check_steps(const TokenizerParts& parts, size_t tokens) {
  for (const NormalizerStep& step : parts.normalizers) CharacterMap::check(step.character_map);
  for (const PostProcessorStep& step : parts.post_processors) {
    for (const TemplateToken& token : step.special_tokens) {
      for (const int32_t id : token.ids) {
        if (id >= 0 && static_cast<size_t>(id) < tokens) continue;
        throw FormatError(fmt::format("post_processor: the id {} of {} is not in the vocabulary of {} tokens",
                                      id, in_quotes(token.name), tokens));
      }
    }
  }
}

}  // namespace mh
