#include "multihead/folders/mask_token.h"

#include <fmt/format.h>

#include "multihead/base/error.h"

namespace mh {

std::string mask_token(const ModelFolder& folder) {
  const Tokenizer& tokenizer = folder.source_tokens();
  for (const std::string& token : {folder.mask_token, std::string("[MASK]"), std::string("<mask>")}) {
    if (!token.empty() && tokenizer.id_of(token)) return token;
  }
  throw UsageError(fmt::format("the tokenizer of {} has no mask token", folder.path.string()));
}

}  // namespace mh
