// A chat on a terminal.
#pragma once

#include "multihead/folders/model_folder.h"
#include "multihead/tasks/generate_text.h"

namespace mh::cli {

/// Reads messages from standard input, a line each, and lets the model answer each at once, with all messages and
/// answers before it, until the input ends. Blank lines are none. options: those of each answer.
void converse(const ModelFolder& folder, GenerateTextOptions options);

}  // namespace mh::cli
