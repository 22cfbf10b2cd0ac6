// What the verbs say about text that a model reads.
#pragma once

#include <string>

#include "multihead/tasks/model_text.h"

namespace mh::cli {

/// For lines of text, or of ids when --token-ids was given; remarks go to standard error. strict: lines that
/// are too long are refused.
ModelText::Options text_options(bool token_ids, bool strict = false);

/// ModelText for a verb that has --token-ids, which a folder without tokenizer needs.
ModelText text_or_ids(const ModelFolder& folder, bool token_ids, bool strict,
                      const LanguagePair& languages = {}, const std::string& prefix = {});

/// Remarks on the words that the tokenizer did not know since the last call, if there were any.
void tell_unknown(ModelText& text);

}  // namespace mh::cli
