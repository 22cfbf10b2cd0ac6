// A chat as lines of JSON, a message each:
//
//   {"role": "system", "content": "Be short."}
//   {"role": "user", "content": "How high is the sky?"}
#pragma once

#include <span>
#include <string>
#include <vector>

#include "multihead/tasks/generate_text.h"

namespace mh {

/// Returns the messages. Throws FormatError, naming the line, on what is no such message and on a system message that
/// is not the first one; and unless the last message is a user's, which a model can answer. name: what errors call
/// the text.
std::vector<ChatMessage> parse_chat(std::span<const std::string> lines, const std::string& name);

}  // namespace mh
