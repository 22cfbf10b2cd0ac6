// The tables of tensor names of the families: one row for each parameter, # for the number of a layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/family.h"
#include "multihead/folders/known_keys.h"
#include "multihead/io/config.h"
#include "multihead/kernels/elementwise.h"

namespace mh {

struct TensorName {
  std::string_view ours, theirs;  // "decoder.#.feed_forward.w_1", "h.#.mlp.c_fc.weight"
  TensorPlace::Layout layout = TensorPlace::Layout::kMatrix;
  int part = 0, parts = 1;  // in a fused tensor
  float offset = 0;         // TensorPlace::offset
};

/// A part of a model that a family calls otherwise than the table: what stands before the last dot of its tensors' names.
struct ModuleName {
  std::string_view in_table, here;  // "encoder.layer.#.output.dense", "transformer.layer.#.ffn.lin2"
};

/// Returns the place of a parameter according to the table, with the names of these modules. When the table does not have it,
/// the place has a name that no file has, so that reading reports it as missing.
TensorPlace place_in(std::span<const TensorName> table, std::string_view parameter,
                     std::span<const ModuleName> modules = {});

/// The layers of labels of BartForSequenceClassification and T5ForSequenceClassification.
inline constexpr const char* kTextLabelLayers = "classification_head.";
/// Where their parameters ("labels.w", "labels.dense.b", ...) are.
TensorPlace text_label_place(std::string_view parameter);

/// Ids of special tokens, as far as they can be told without the vocabulary; -1 or null: there is none.
inline constexpr Rule<int32_t> kTokenIds{.low = -1, .high = (1 << 24) - 1};

/// The names of activations in Hugging Face's configurations.
inline constexpr EnumNames<Activation> kHuggingFaceActivations = {
    {"relu", Activation::kRelu},          {"gelu", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},  {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh}, {"swish", Activation::kSwish},
    {"silu", Activation::kSwish}};

/// An id in config.json and its key.
struct SpecialId {
  const char* key;
  std::optional<int32_t>& id;
};
/// Takes ids away that no token of the vocabulary has, such as GPT2Config's defaults beside a smaller vocabulary, which
/// transformers opens, too. Returns the line for the user, empty when there are none.
std::string without_ids_beyond(int32_t vocabulary, std::initializer_list<SpecialId> ids,
                               std::string_view name);

/// Returns a config.json in which eos_token_id, where it is a list, as Llama 3's, of tokens that end a text, is the first one.
std::string with_one_end(std::string_view json, std::string_view name);

/// Whether the files have an output layer whose numbers are not those of the table of embeddings (the first of these names
/// that is there). Then transformers does not tie them, whatever tie_word_embeddings says.
bool has_own_output(const TensorFiles& files, std::string_view output,
                    std::initializer_list<std::string_view> embeddings);

/// The keys with which a decoder says that its tokens see those behind them, too, which is refused.
KnownKeys causal_keys();

/// "layer_types", of families whose layers may differ: a name for each layer.
using LayerTypes = std::optional<std::vector<std::string>>;
/// Adds to `wrong` a number of names other than that of the layers, and names of layers that are not done here.
void check_layer_types(const LayerTypes& types, int32_t layers, std::vector<std::string>& wrong);
/// Adds to `wrong` that the types name windows where there is no sliding_window.
void check_window(const LayerTypes& types, const std::optional<int32_t>& window,
                  std::vector<std::string>& wrong);
/// Whether a layer has a window by the types.
bool names_windows(const LayerTypes& types);
/// Whether layer i has a window: as the types say, or where there are none `otherwise`.
bool has_window(const LayerTypes& types, size_t i, bool otherwise);

/// FolderPlan::fields_of_heads of families whose heads share d_model evenly, each with its own keys and values.
std::map<std::string, int32_t> heads_that_divide(const HeadGeometry& heads, int32_t d_model,
                                                 const std::string& field);

}  // namespace mh
