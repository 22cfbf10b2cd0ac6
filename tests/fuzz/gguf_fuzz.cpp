// The entry point of the fuzzer for GGUF files; scripts/fuzz builds and runs it. A file is a model or an error
// of one line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "multihead/folders/gguf_folder.h"
#include "tests/fuzz/one_line.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mh::reads([&] {
    mh::GgufFile file =
        mh::GgufFile::from_bytes(std::string(reinterpret_cast<const char*>(data), size), "file.gguf");
    for (const mh::GgufTensor& tensor : file.tensors()) file.floats(tensor);
    mh::load_model_folder(mh::open_gguf_folder(std::move(file)));
  });
  return 0;
}
