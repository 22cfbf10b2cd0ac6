#include "cli/model_text.h"

#include "cli/common.h"

namespace mh::cli {

ModelText::Options text_options(bool token_ids, bool strict) {
  return {.form = token_ids ? LineForm::kTokenIds : LineForm::kText,
          .remark = [](const std::string& line) { remark(line); },
          .strict = strict};
}

void tell_unknown(ModelText& text) {
  text.take_unknown().tell([](const std::string& line) { remark(line); });
}

}  // namespace mh::cli
