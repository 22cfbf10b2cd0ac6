// Between a model's parameters and the tensors of its files.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "multihead/models/families/family.h"

namespace mh {

/// The bytes of a model.safetensors with this model's parameters at their places, float32. REQUIRES: no place
/// is a part of a fused tensor.
std::string write_weights(const Model& model,
                          const std::function<TensorPlace(std::string_view parameter)>& place);

/// A model with the files' numbers. float32 and bfloat16 stay where they are: the files are mapped into
/// memory and products pack weights from there; float16 and float64 are converted. Throws FormatError that
/// starts with the files' name and lists all differences at once: "missing: ...; shape of X: expected [..],
/// got [..]; type of X:
/// ...; not used: ...; not finite: ...". The memory it asks for is a small multiple of the files, whatever
/// config.json claims.
std::unique_ptr<Model> read_weights(const WeightFiles& files, const FolderPlan& plan);
/// The same in two steps, for who asks the model something before its weights are read.
std::unique_ptr<Model> make_model(const WeightFiles& files, const FolderPlan& plan);
void read_weights(const WeightFiles& files, const FolderPlan& plan, Model& model);

}  // namespace mh
