#include "multihead/folders/mask_token.h"

#include <fmt/format.h>

#include "multihead/base/error.h"

namespace mh {

std::optional<int32_t> mask_id(const ModelFolder& folder, const Tokenizer& tokenizer) {
  for (const std::string& token : {folder.mask_token, std::string("[MASK]"), std::string("<mask>")}) {
    if (token.empty()) continue;
    if (const auto id = tokenizer.id_of(token)) return id;
  }
  return std::nullopt;
}

std::string mask_token(const ModelFolder& folder) {
  const Tokenizer& tokenizer = folder.source_tokens();
  if (const auto id = mask_id(folder, tokenizer)) return tokenizer.token_of(*id);
  throw UsageError(fmt::format("the tokenizer of {} has no mask token", folder.path.string()));
}

}  // namespace mh
