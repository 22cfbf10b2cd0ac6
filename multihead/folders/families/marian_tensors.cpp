// What the tensors of an encoder-decoder are called in its files, Marian's or BART's, and which of them are no parameters.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/families/translator_fields.h"
#include "multihead/folders/family_names.h"
#include "multihead/kernels/embedding.h"

namespace mh {
namespace {

using Layout = TensorPlace::Layout;

struct Renaming {
  std::string_view ours, theirs;
};
constexpr std::array<Renaming, 6> kBlocks{{{"self_attention", "self_attn"},
                                           {"cross_attention", "encoder_attn"},
                                           {"feed_forward", ""},
                                           {"self_attention_norm", "self_attn_layer_norm"},
                                           {"cross_attention_norm", "encoder_attn_layer_norm"},
                                           {"feed_forward_norm", "final_layer_norm"}}};

struct LeafRenaming {
  std::string_view ours, theirs;
  Layout layout;
};
constexpr std::array<LeafRenaming, 14> kLeaves{{{"w_q", "q_proj.weight", Layout::kTransposed},
                                                {"w_k", "k_proj.weight", Layout::kTransposed},
                                                {"w_v", "v_proj.weight", Layout::kTransposed},
                                                {"w_o", "out_proj.weight", Layout::kTransposed},
                                                {"b_q", "q_proj.bias", Layout::kVector},
                                                {"b_k", "k_proj.bias", Layout::kVector},
                                                {"b_v", "v_proj.bias", Layout::kVector},
                                                {"b_o", "out_proj.bias", Layout::kVector},
                                                {"w_1", "fc1.weight", Layout::kTransposed},
                                                {"b_1", "fc1.bias", Layout::kVector},
                                                {"w_2", "fc2.weight", Layout::kTransposed},
                                                {"b_2", "fc2.bias", Layout::kVector},
                                                {"gain", "weight", Layout::kVector},
                                                {"bias", "bias", Layout::kVector}}};

// What stands before the last dot of a parameter that is in no layer. Marian has none of these.
constexpr std::array<Renaming, 6> kOutsideOfLayers{
    {{"positions", "model.encoder.embed_positions"},
     {"target_positions", "model.decoder.embed_positions"},
     {"embedding.norm", "model.encoder.layernorm_embedding"},
     {"target_embedding.norm", "model.decoder.layernorm_embedding"},
     {"encoder.final_norm", "model.encoder.layer_norm"},
     {"decoder.final_norm", "model.decoder.layer_norm"}}};

/// Null: the table does not have it.
template <class Table>
const auto* renamed(const Table& table, std::string_view ours) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.ours == ours; });
  return found == table.end() ? nullptr : &*found;
}

// "encoder.3.self_attention.w_q" -> "model.encoder.layers.3.self_attn.q_proj.weight". What other heads have beside these
// has our names.
TensorPlace place_of_weight(std::string_view parameter) {
  if (const Renaming* table = renamed(kOutsideOfLayers, parameter))
    return {.names = {fmt::format("{}.weight", table->theirs)}};
  std::vector<std::string_view> parts;  // side, layer, block, leaf
  for (size_t at = 0; at <= parameter.size();) {
    const size_t dot = std::min(parameter.find('.', at), parameter.size());
    parts.push_back(parameter.substr(at, dot - at));
    at = dot + 1;
  }
  const LeafRenaming* const leaf = renamed(kLeaves, parts.back());
  if (leaf != nullptr && parts.size() == 4) {
    if (const Renaming* block = renamed(kBlocks, parts[2])) {
      return {.names = {fmt::format("model.{}.layers.{}.{}{}{}", parts[0], parts[1], block->theirs,
                                    block->theirs.empty() ? "" : ".", leaf->theirs)},
              .layout = leaf->layout};
    }
  }
  if (leaf != nullptr && parts.size() == 3) {
    if (const Renaming* module = renamed(kOutsideOfLayers, parameter.substr(0, parameter.rfind('.'))))
      return {.names = {fmt::format("{}.{}", module->theirs, leaf->theirs)}, .layout = leaf->layout};
  }
  return {.names = {std::string(parameter)}};
}

bool holds(const TensorFiles& files, const std::string& tensor, ConstMatrixView expected, float tolerance) {
  if (files.tensor(tensor).shape != std::vector<int64_t>{expected.rows, expected.cols}) return false;
  const std::vector<float> found = files.floats(tensor);
  return std::equal(found.begin(), found.end(), expected.data,
                    [&](float a, float b) { return std::abs(a - b) <= tolerance; });
}

}  // namespace

bool is_no_parameter(const std::string& tensor, const TensorFiles& files, const Model& model,
                     const Tying& tying, const EncoderDecoderConfig& config, Differences& differences) {
  constexpr float kHalfPrecision = 0.01f;
  if (tensor.ends_with(".embed_positions.weight")) {
    Tensor positions(config.max_positions, config.encoder.d_model);
    sinusoids(positions.view());
    if (!holds(files, tensor, positions.view(), kHalfPrecision)) {
      differences.other(fmt::format("{} holds something else than the [{},{}] sinusoids of Marian", tensor,
                                    config.max_positions, config.encoder.d_model));
    }
    return true;
  }
  constexpr std::array kEmbeddings = {kSharedTable, kSourceTable, kTargetTable, kOutputTable};
  if (std::find(kEmbeddings.begin(), kEmbeddings.end(), tensor) == kEmbeddings.end()) return false;
  if (!tying.all() && tensor == kOutputTable && files.contains(kTargetTable) &&
      !files.same(kOutputTable, kTargetTable)) {
    differences.other(fmt::format("{} is not {}, though tie_word_embeddings is true; set it to false",
                                  kOutputTable, kTargetTable));
  }
  if (!tying.all() && tying.source_and_target && tensor == kSharedTable && files.contains(kSourceTable) &&
      !files.same(kSharedTable, kSourceTable))
    differences.other(fmt::format("{} is not {}, though config.json ties them", kSharedTable, kSourceTable));
  model.visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    if (name != "embedding" || !tying.all() || holds(files, tensor, parameter.value.view(), 0)) return;
    differences.other(fmt::format("{} is not the shared embedding, though config.json ties them", tensor));
  }));
  return true;
}

TensorPlace encoder_decoder_place(std::string_view model_type, std::string_view parameter,
                                  const Tying& tying) {
  if (model_type == "multihead") return {.names = {std::string(parameter)}};
  const auto with_shared = [&](TensorPlace place) {
    if (tying.source_and_target) place.names.emplace_back(kSharedTable);
    return place;
  };
  if (parameter == "embedding") {
    if (tying.all()) return {.names = {kSharedTable, kSourceTable}};
    return with_shared({.names = {kSourceTable}});
  }
  if (parameter == "target_embedding") return with_shared({.names = {kTargetTable}});
  if (parameter == "output") return {.names = {kOutputTable}};
  if (parameter == "logits_bias") return {.names = {kLogitsBias}, .may_be_missing = true};
  return place_of_weight(parameter);
}

}  // namespace mh
