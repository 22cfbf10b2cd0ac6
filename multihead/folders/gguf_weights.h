// The tensors of a GGUF file as TensorFiles, from which read_parameters() fills a model.
#pragma once

#include "multihead/folders/gguf_architecture.h"
#include "multihead/folders/gguf_config.h"
#include "multihead/folders/tensor_files.h"
#include "multihead/io/gguf.h"

namespace mh {

/// F32 and BF16 stay in the mapped file; matrices of other types are converted to
/// float32 whenever they are read.
///
/// What a converter has done to the numbers is undone: rows in another order (GgufArchitecture::Rows) are put back, and so are
/// their biases, and gains of norms with 1 added are less 1.
TensorFiles gguf_weights(const GgufFile& file, const GgufArchitecture& architecture, const GgufHeads& heads);

}  // namespace mh
