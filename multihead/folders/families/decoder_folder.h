// What the folders of causal decoders have in common: names of tensors with and without the model that ...ForCausalLM puts
// before them, an output layer that may be tied or missing, and buffers that are no weights.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/families/family.h"
#include "multihead/folders/families/names.h"
#include "multihead/models/causal_model.h"

namespace mh {

/// What a family calls its tensors. The tables have a row for each parameter but the output layer's, without `base`.
struct DecoderNames {
  std::string_view model_type = {};
  std::string_view base = "model.";      // before the names of the model that ...ForCausalLM has inside of it
  std::span<const TensorName> own = {};  // looked at before `tensors`
  std::span<const TensorName> tensors = {};
  std::string_view output = "lm_head.weight", output_bias = "lm_head.bias";
  std::span<const std::string_view> no_weights = {};  // how names end that are no weights: masks, angles
  std::vector<std::string> other_heads = {"score."};  // FolderPlan::other_heads
  int64_t block = 0;                                  // TensorPlace::block of fused queries, keys and values
};

/// A configuration that was read, and what there is to say about it.
struct DecoderDraft {
  CausalConfig config = {};
  std::vector<std::string> wrong = {}, remarks = {};
};

/// Takes ids away that no token has (without_ids_beyond()) and adds to `remarks`.
void drop_ids_beyond(DecoderDraft& draft, std::initializer_list<SpecialId> ids, std::string_view name);

/// Throws FormatError "NAME: ..." when something is wrong with the draft.
FolderPlan decoder_plan(
    const DecoderNames& names, DecoderDraft draft, const ConfigNames& fields, std::string_view name,
    std::function<std::map<std::string, int32_t>(const HeadGeometry&, int32_t)> fields_of_heads);

/// FolderPlan::fields_of_heads of families that say how many heads of queries and of keys there are, and their size.
std::map<std::string, int32_t> grouped_heads(const HeadGeometry& heads, int32_t d_model);

/// The names of fields in most of these families.
inline constexpr ConfigNames kDecoderFields = {.vocabulary = "vocab_size",
                                               .d_model = "hidden_size",
                                               .max_positions = "max_position_embeddings",
                                               .pad_id = "pad_token_id",
                                               .eos_id = "eos_token_id",
                                               .start_id = "bos_token_id"};

inline constexpr TensorPlace::Layout kOutIn = TensorPlace::Layout::kTransposed,
                                     kOneRow = TensorPlace::Layout::kVector;

}  // namespace mh
