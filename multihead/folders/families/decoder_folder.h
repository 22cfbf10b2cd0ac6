// What the folders of causal decoders have in common: names of tensors with and without the model that ...ForCausalLM puts
// before them, an output layer that may be tied or missing, a layer of labels in its place, and buffers that are no weights.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/folders/families/rope_fields.h"
#include "multihead/folders/family.h"
#include "multihead/folders/family_names.h"
#include "multihead/models/causal_model.h"

namespace mh {

/// What a family calls its tensors. The tables have a row for each parameter but those of the output layer and the labels,
/// without `base`.
struct DecoderNames {
  std::string_view model_type = {};
  std::string_view base = "model.";      // before the names of the model that ...ForCausalLM has inside of it
  std::span<const TensorName> own = {};  // looked at before `tensors`
  std::span<const TensorName> tensors = {};
  std::string_view output = "lm_head.weight", output_bias = "lm_head.bias";
  /// The layers of labels of ...ForSequenceClassification and of ...ForTokenClassification.
  std::string_view text_labels = "score", token_labels = "score";
  std::span<const std::string_view> no_weights = {};  // how names end that are no weights: masks, angles
  int64_t block = 0;                                  // TensorPlace::block of fused queries, keys and values
};

/// A configuration that was read, and what there is to say about it.
struct DecoderDraft {
  CausalConfig config = {};
  std::vector<std::string> wrong = {}, remarks = {};
  /// Whether tokens see those behind them, too: these layers are an encoder then, which predicts nothing.
  bool sees_all = false;
};
/// Makes it so. A window of so many tokens becomes one that reaches that many less `fewer` to each side.
void see_all(DecoderDraft& draft, int32_t fewer = 0);
/// Returns what is wrong with its configuration.
std::vector<std::string> problems_of(const DecoderDraft& draft, const ConfigNames& names);

/// Visits the keys that nearly all of these families have under one name.
template <class V, class Fields>
void visit_decoder(V& v, Fields& f) {
  v("vocab_size", f.vocabulary, {.low = 2, .high = 1 << 24});
  v("max_position_embeddings", f.positions, {.low = 1, .high = 1 << 20});
  v("hidden_size", f.d_model, {.low = 1, .high = 1 << 16});
  v("attention_dropout", f.attention_dropout, {.low = 0, .high = 0.999f});
  v("tie_word_embeddings", f.tied);
  v("bos_token_id", f.start, kTokenIds);
  v("eos_token_id", f.end, kTokenIds);
  v("pad_token_id", f.pad, kTokenIds);
}
/// Likewise.
template <class V, class Fields>
void visit_layers(V& v, Fields& f) {
  v("num_hidden_layers", f.layers, {.low = 1, .high = 1024});
  v("num_attention_heads", f.heads, {.low = 1, .high = 1024});
}

/// What the fields of all of these families say alike: embeddings, a causal stack with norms before its sublayers, and ids. The
/// layers and positions are the family's.
template <class Fields>
CausalConfig decoder_config(const Fields& f) {
  return {.embedding = {.vocabulary = f.vocabulary, .d_model = f.d_model, .scaled = false},
          .max_positions = f.positions,
          .stack = {.name = "decoder",
                    .d_model = f.d_model,
                    .mask = StackMask::causal(),
                    .norm = {.placement = NormPlacement::kPre, .epsilon = f.epsilon},
                    .dropout = {.residual = f.dropout, .weights = f.attention_dropout}},
          .tied = f.tied,
          .pad_id = f.pad.value_or(-1),
          .eos_id = f.end.value_or(-1),
          .start_id = f.start.value_or(-1)};
}
/// The same with positions that turn.
void turn(CausalConfig& config, const RopePositions& rope);

/// A draft with decoder_config(), without those of the ids that no token has (without_ids_beyond()).
template <class Fields>
DecoderDraft decoder_draft(Fields& f, std::initializer_list<SpecialId> ids, std::string_view name) {
  DecoderDraft draft;
  if (std::string line = without_ids_beyond(f.vocabulary, ids, name); !line.empty())
    draft.remarks.push_back(std::move(line));
  draft.config = decoder_config(f);
  return draft;
}

using FieldsOfHeads =
    std::function<std::map<std::string, int32_t>(const HeadGeometry& heads, int32_t d_model)>;
/// json: the config.json, for its labels. Throws FormatError "NAME: ..." when something is wrong with the draft.
FolderPlan decoder_plan(const DecoderNames& names, DecoderDraft draft, const ConfigNames& fields,
                        std::string_view json, std::string_view name, FieldsOfHeads fields_of_heads);

/// FolderPlan::fields_of_heads of families whose heads share d_model evenly (heads_that_divide()).
FieldsOfHeads divided_heads(const char* field);
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
