// The entry point of the fuzzer for chat templates; scripts/fuzz builds and runs it. Up to the first byte 0 the bytes are a
// template; each piece behind it is a message.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/utf8.h"
#include "multihead/tasks/run_template.h"
#include "tests/fuzz/one_line.h"

namespace mh {
namespace {

std::vector<std::string> pieces(std::string_view bytes) {
  std::vector<std::string> all{""};
  for (const char byte : bytes) {
    if (byte == 0) {
      all.emplace_back();
    } else {
      all.back() += byte;
    }
  }
  return all;
}

}  // namespace
}  // namespace mh

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> all = mh::pieces(bytes);
  std::vector<mh::ChatMessage> messages;
  for (size_t i = 1; i < all.size(); ++i) {
    if (mh::first_invalid_utf8(all[i]) != std::string::npos) return 0;  // no caller gives such a message
    messages.push_back({i % 2 == 1 ? mh::ChatRole::kUser : mh::ChatRole::kAssistant, all[i]});
  }
  const mh::TemplateVariables variables{.messages = messages,
                                        .texts = {{"bos_token", "<s>"}, {"eos_token", "</s>"}},
                                        .now = std::tm{},
                                        .work = size_t{1} << 22};  // many templates, not the longest
  std::string text, again;
  if (mh::reads([&] { text = mh::run_template(all[0], variables, true, "fuzzed"); })) {
    mh::reads([&] { again = mh::run_template(all[0], variables, true, "fuzzed"); });
    if (text != again) std::abort();
  }
  return 0;
}
