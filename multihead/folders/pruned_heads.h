// "pruned_heads" of config.json: the heads that are gone from a folder of BERT, RoBERTa, DistilBERT, ELECTRA or GPT-2, as the
// prune_heads() of Hugging Face Transformers 2 to 4 writes them:
//
//   "num_attention_heads": 12, "pruned_heads": {"0": [1, 5], "3": [0]}
//
// Layer 0 has ten heads and layer 3 eleven; numbers are those of the model before any head was pruned. The size of a head stays
// d_model / num_attention_heads. Transformers 5 has no pruning: it reports tensors of another shape.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/nn/head_name.h"

namespace mh {

/// Layer -> its heads that are gone, rising.
using PrunedHeads = std::map<int, std::vector<int>>;

/// Reads the field from a config.json; empty where there is none. Throws FormatError that starts with `name` when it is not
/// numbers of layers with lists of numbers of heads, each once.
PrunedHeads read_pruned_heads(std::string_view json, std::string_view name);

/// The heads of the attentions of `model`, which has all of them yet. Throws FormatError that starts with `name` on a layer or a
/// head that it does not have, and on a layer without any head.
HeadsOfAttentions without_pruned_heads(const Model& model, const PrunedHeads& pruned, std::string_view name);

/// The field for `now`, which `as_read`, with its own `pruned` heads, becomes without the heads `removed`, by their numbers there.
/// None when `now` is something else, or has heads that the field cannot describe.
std::optional<PrunedHeads> pruned_heads_after(const PrunedHeads& pruned, const Model& as_read,
                                              const Model& now, std::span<const HeadName> removed);

}  // namespace mh
