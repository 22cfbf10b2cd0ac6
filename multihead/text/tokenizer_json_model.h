// Writes the model of tokenizer.json.
#pragma once

#include <string>

#include "multihead/text/tokenizer_parts.h"

namespace mh {

void append_model_json(std::string& out, const TokenModel& model);

}  // namespace mh
