#include "cli/model_text.h"

#include <fmt/format.h>

#include <utility>

#include "cli/common.h"
#include "multihead/base/error.h"

namespace mh::cli {

ModelText::Options text_options(bool token_ids, bool strict) {
  return {.form = token_ids ? LineForm::kTokenIds : LineForm::kText,
          .remark = [](const std::string& line) { remark(line); },
          .strict = strict};
}

ModelText text_or_ids(const ModelFolder& folder, bool token_ids, bool strict, const LanguagePair& languages,
                      const std::string& prefix) {
  ModelText::Options options = text_options(token_ids, strict);
  options.languages = languages;
  options.prefix = prefix;
  try {
    return ModelText(folder, std::move(options));
  } catch (const FileError& no_tokenizer) {
    throw FileError(fmt::format("{}, or give --token-ids", no_tokenizer.what()));
  }
}

void tell_unknown(ModelText& text) {
  text.take_unknown().tell([](const std::string& line) { remark(line); });
}

}  // namespace mh::cli
