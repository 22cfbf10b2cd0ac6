// Reads the parameters of a model from the tensors of its files.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/family.h"

namespace mh {

/// Returns the model with the numbers of the files. float32, bfloat16 and float16 stay where they are: the files are mapped into
/// memory and products pack weights from there; float64 is converted. Throws FormatError that starts with the files' name and
/// lists all differences at once: "missing: ...; shape of X: expected [..], got [..]; type of X: ...; not used: ...; not finite:
/// ..."; this takes hardly any memory, since nothing is converted before all fits.
std::unique_ptr<Model> read_parameters(const TensorFiles& files, const FolderPlan& plan);
/// The same in two steps, for callers that inspect the model before its weights are read. Returns the tensors that belong to
/// heads which are not done here (FolderPlan::other_heads).
std::unique_ptr<Model> make_model(const TensorFiles& files, const FolderPlan& plan);
std::vector<std::string> read_parameters(const TensorFiles& files, const FolderPlan& plan, Model& model);
/// Returns the name of the tensor that a parameter is read from; empty when the files have none.
std::string tensor_of(const TensorFiles& files, const FolderPlan& plan, std::string_view parameter);

}  // namespace mh
