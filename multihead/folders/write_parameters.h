// Writes the parameters of a model as the tensors of a folder: model.safetensors, or shards and an index of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/folders/family.h"
#include "multihead/folders/save_folder.h"

namespace mh {

/// What config.json calls the type of the numbers that are written: "float32" or "bfloat16". Throws UsageError for float16, which
/// is only read.
const char* saved_type_name(NumberType type);

struct WriteParametersOptions {
  NumberType type = NumberType::kFloat32;  // bfloat16: each number is rounded to the nearest
  /// Bytes of tensors in one file. More become model-00001-of-0000N.safetensors ... and model.safetensors.index.json, as
  /// save_pretrained() of transformers writes them; a tensor is never cut.
  int64_t largest_file = 5'000'000'000;
  /// Tensors that are copied, rounded alike, from these files: those of heads that the model does not have.
  const TensorFiles* copied_from = nullptr;
  std::vector<std::string> copied = {};
  SavedMatrices matrices = SavedMatrices::kNumbers;
};

/// The names of the tensors that are written as integers with a scale for each row (folders/int8_matrices.h), sorted: with
/// SavedMatrices::kInt8 the matrices that lie [out, in] and whose rows are a multiple of 32 numbers, which are all that products
/// read but the output layer, and in GPT-2 and our own format none.
std::vector<std::string> int8_tensors(const Model& model,
                                      const std::function<TensorPlace(std::string_view parameter)>& place,
                                      const WriteParametersOptions& options);

/// Adds the files to `folder`, each tensor under the first of its place's names, from blocks of rows: besides the model it takes
/// the memory of the largest tensor. Returns the names of the files. Throws UsageError as saved_type_name(), FileError,
/// Interrupted, and Error that names the tensor whose numbers are not finite or too large for the type.
std::vector<std::string> write_parameters(FolderWriter& folder, const Model& model,
                                          const std::function<TensorPlace(std::string_view parameter)>& place,
                                          const WriteParametersOptions& options = {});

/// Returns the bytes of one file with the same tensors.
std::string parameters_as_file(const Model& model,
                               const std::function<TensorPlace(std::string_view parameter)>& place);

}  // namespace mh
