// The entry point of the fuzzer for SentencePiece models; scripts/fuzz builds and runs it.
#include "multihead/text/sentencepiece_model.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "tests/fuzz/tokenizer_try.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::optional<mh::Tokenizer> tokenizer;
  try {
    tokenizer.emplace(mh::read_sentencepiece_model({reinterpret_cast<const char*>(data), size}, "fuzzed"));
  } catch (const mh::FormatError&) {
    return 0;
  }
  mh::try_tokenizer(*tokenizer);
  return 0;
}
