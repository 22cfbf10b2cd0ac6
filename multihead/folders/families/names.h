// The tables of tensor names of the families: one row for each parameter, # for the number of a layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/families/family.h"
#include "multihead/folders/known_keys.h"
#include "multihead/io/config.h"
#include "multihead/kernels/elementwise.h"

namespace mh {

struct TensorName {
  std::string_view ours, theirs;  // "decoder.#.feed_forward.w_1", "h.#.mlp.c_fc.weight"
  TensorPlace::Layout layout = TensorPlace::Layout::kMatrix;
  int part = 0, parts = 1;  // in a fused tensor
};

/// Returns the place of a parameter according to the table. When the table does not have it, the place has
/// a name that no file has, so that reading reports it as missing.
TensorPlace place_in(std::span<const TensorName> table, std::string_view parameter);

/// Ids of special tokens, as far as they can be told without the vocabulary; -1 or null: there is none.
inline constexpr Rule<int32_t> kTokenIds{.low = -1, .high = (1 << 24) - 1};

/// The names of activations in Hugging Face's configurations.
inline constexpr EnumNames<Activation> kHuggingFaceActivations = {
    {"relu", Activation::kRelu},          {"gelu", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},  {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh}, {"swish", Activation::kSwish},
    {"silu", Activation::kSwish}};

/// The keys with which a decoder says that its tokens see those behind them, too, which is refused.
KnownKeys causal_keys();

/// "layer_types", of families whose layers may differ: a name for each layer.
using LayerTypes = std::optional<std::vector<std::string>>;
/// Adds to `wrong` a number of names other than that of the layers, and names of layers that are not done here.
void check_layer_types(const LayerTypes& types, int32_t layers, std::vector<std::string>& wrong);
/// Whether layer i has a window: as the types say, or where there are none `otherwise`.
bool has_window(const LayerTypes& types, size_t i, bool otherwise);

/// FolderPlan::fields_of_heads of families whose heads share d_model evenly, each with its own keys and values.
std::map<std::string, int32_t> heads_that_divide(const HeadGeometry& heads, int32_t d_model,
                                                 const std::string& field);

}  // namespace mh
