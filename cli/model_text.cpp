#include "cli/model_text.h"

#include <fmt/format.h>

#include "cli/common.h"

namespace mh::cli {

ModelText::Options text_options(bool token_ids, bool strict) {
  return {.form = token_ids ? LineForm::kTokenIds : LineForm::kText,
          .remark = [](const std::string& line) { remark(line); },
          .strict = strict};
}

void tell_unknown(ModelText& text) {
  const UnknownTokens unknown = text.take_unknown();
  if (unknown.tokens > 0) remark(fmt::format("{}; the tokenizer does not know them", unknown.in_words()));
}

}  // namespace mh::cli
