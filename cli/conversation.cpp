#include "cli/conversation.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cli/common.h"
#include "cli/live_text.h"
#include "multihead/generate/prompt_cache.h"
#include "multihead/io/lines.h"

namespace mh::cli {

void converse(const ModelFolder& folder, GenerateTextOptions options) {
  const auto reader =
      text_reader("", "each line is a message, which is answered at once; Ctrl-D on an empty line ends");
  PromptCache cache;  // so that a turn reads only what is new
  if (options.generate.next_token != NextToken::kBeam) options.generate.prompt_cache = &cache;
  LiveText text(options);
  options.from = {.one = "message"};
  while (!reader->ended()) {
    for (const std::string& message : reader->next({.max_lines = 1, .wait = std::chrono::milliseconds(0)})) {
      if (message.find_first_not_of(" \t\r") == std::string::npos) continue;
      std::string answer = generate_text(folder, {message}, options).at(0).text;
      text.end();
      options.earlier.push_back({ChatRole::kUser, message});
      options.earlier.push_back({ChatRole::kAssistant, std::move(answer)});
      // Each answer has random numbers and a number of its own.
      ++options.generate.first_number;
      ++options.from.first;
    }
  }
}

}  // namespace mh::cli
