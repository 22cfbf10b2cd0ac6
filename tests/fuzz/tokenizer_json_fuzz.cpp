// The entry point of the fuzzer for tokenizer.json; scripts/fuzz builds and runs it.
#include "multihead/text/tokenizer.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "tests/fuzz/tokenizer_try.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::optional<mh::Tokenizer> tokenizer;
  try {
    tokenizer = mh::Tokenizer::from_json({reinterpret_cast<const char*>(data), size}, "fuzzed");
  } catch (const mh::FormatError&) {
    return 0;
  }
  mh::try_tokenizer(*tokenizer);
  const std::string written = tokenizer->to_json();  // what was read can be read again
  if (mh::Tokenizer::from_json(written, "written").to_json() != written) std::abort();
  return 0;
}
