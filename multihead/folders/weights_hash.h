// Which weights a model has, as others can check it.
#pragma once

#include <string>

#include "multihead/folders/model_folder.h"

namespace mh {

/// SHA-256 of the files of weights, 64 hexadecimal digits, as sha256sum prints it: of model.safetensors, of all *.safetensors one
/// after the other by their names where there are several, or of the GGUF file. Empty for a model that was read from no files.
/// Throws FileError.
std::string weights_hash(const ModelFolder& folder);

}  // namespace mh
