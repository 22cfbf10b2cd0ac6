// The tensors of a GGUF file as TensorFiles, from which read_parameters() fills a model.
#pragma once

#include "multihead/folders/gguf_config.h"
#include "multihead/folders/tensor_files.h"
#include "multihead/io/gguf.h"

namespace mh {

/// F32 and BF16 stay in the mapped file; matrices of other types are converted to
/// float32 whenever they are read.
///
/// For "llama" the rows of attn_q and attn_k come in the order of RotaryPairs::kNeighbours, since ggml turns
/// neighbouring numbers: of a head's D rows, row 2 j + s of the file is row s D / 2 + j of the model, s = 0, 1.
/// They are put back, and so are their biases.
TensorFiles gguf_weights(const GgufFile& file, const GgufHeads& heads);

}  // namespace mh
