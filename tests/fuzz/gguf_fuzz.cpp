// The entry point of the fuzzer for GGUF files; scripts/fuzz builds and runs it. A file is a model or an error
// of one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "multihead/base/error.h"
#include "multihead/models/gguf_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const mh::GgufFile file =
        mh::GgufFile::from_bytes(std::string(reinterpret_cast<const char*>(data), size), "file.gguf");
    for (const mh::GgufTensor& tensor : file.tensors()) file.floats(tensor);
    mh::load_gguf(file);
  } catch (const mh::InternalError&) {
    throw;  // a mistake of ours
  } catch (const mh::Error& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
