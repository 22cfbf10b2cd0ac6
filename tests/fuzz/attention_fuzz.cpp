// The entry point of the fuzzer for attention; scripts/fuzz builds and runs it. kernels/attention_try.h
// says what it tries.
#include "../kernels/attention_try.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mh::try_attention({data, size});  // an exception ends the program, and the fuzzer keeps the bytes
  return 0;
}
