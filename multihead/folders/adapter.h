// An adapter beside weights: what peft saves of a model that was trained with it, adapter_config.json and
// adapter_model.safetensors. Where they lie beside the weights of the model that they belong to, transformers puts them on
// when it loads the folder, and so does this library.
//
// LoRA (Hu et al. 2021): the tensor W [out, in] of a linear layer y = x W^T becomes
//
//   W' = W + s B A        A [r, in], B [out, r];  s = alpha / r, or alpha / sqrt(r) with use_rslora (Kalajdzievski 2023)
//
// in float32. Where a tensor is [in, out], as GPT-2's, the transpose of B A is added ("fan_in_fan_out"; the layer says it, not
// the option). So it is to a table of embeddings [words, d], with A [r, words] and B [d, r]. rank_pattern and alpha_pattern give
// modules an r and alpha of their own. Modules of modules_to_save are replaced.
//
// Weights that have the adapter already, as merge_and_unload() leaves them, look alike; their numbers tell
// (folders/adapter_evidence.h). They are left as they are.
#pragma once

#include "multihead/folders/tensor_files.h"

namespace mh {

class FolderSource;

/// The tensors of a folder's weights with its adapter put on, where it has one; that takes the memory of A and B. A remark says
/// that they had it already, or that there are an adapter's weights without its adapter_config.json. Throws FileError when a file of the adapter is missing, and FormatError: options that are not supported, tensors
/// that do not fit the weights or the options, tables of embeddings that are the output layer, too, weights that do not show
/// whether they have it.
TensorFiles with_adapter(TensorFiles files, const FolderSource& folder);

}  // namespace mh
