#include "multihead/models/marian.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "multihead/base/error.h"

namespace mh {
namespace {

using Layout = TensorPlace::Layout;

constexpr const char* kShared = "model.shared.weight";
constexpr const char* kSource = "model.encoder.embed_tokens.weight";
constexpr const char* kTarget = "model.decoder.embed_tokens.weight";
constexpr const char* kOutput = "lm_head.weight";

struct Renaming {
  std::string_view ours;
  std::string_view marian;
};
constexpr std::array<Renaming, 6> kBlocks{{{"self_attention", "self_attn"},
                                           {"cross_attention", "encoder_attn"},
                                           {"feed_forward", ""},
                                           {"self_attention_norm", "self_attn_layer_norm"},
                                           {"cross_attention_norm", "encoder_attn_layer_norm"},
                                           {"feed_forward_norm", "final_layer_norm"}}};

struct LeafRenaming {
  std::string_view ours;
  std::string_view marian;
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

template <class Table>
const auto& renamed(const Table& table, std::string_view ours) {
  for (const auto& row : table) {
    if (row.ours == ours) return row;
  }
  MH_ASSERT(!"a parameter that Marian has no name for");
  return table.front();
}

// "encoder.3.self_attention.w_q" -> "model.encoder.layers.3.self_attn.q_proj.weight".
TensorPlace place_in_layer(std::string_view parameter) {
  std::array<std::string_view, 4> parts;  // side, layer, block, leaf
  std::string_view rest = parameter;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t dot = rest.find('.');
    MH_ASSERT((dot == std::string_view::npos) == (i + 1 == parts.size()));
    parts[i] = rest.substr(0, dot);
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  const std::string_view block = renamed(kBlocks, parts[2]).marian;
  const LeafRenaming& leaf = renamed(kLeaves, parts[3]);
  return {.names = {fmt::format("model.{}.layers.{}.{}{}{}", parts[0], parts[1], block,
                                block.empty() ? "" : ".", leaf.marian)},
          .layout = leaf.layout};
}

}  // namespace

const char* model_type_name(ModelType type) {
  return type == ModelType::kMarian ? "marian" : "multihead";
}

ModelType natural_model_type(const EncoderDecoderConfig& config) {
  // How heads start is no part of a trained model.
  HeadGeometry geometry = config.geometry;
  geometry.heads = HeadGeometry().heads;
  geometry.initialisation = HeadGeometry().initialisation;
  const bool canonical = geometry == HeadGeometry();
  const bool marian =
      config.norm == NormPlacement::kPost && config.positions == Positions::kSinusoidal && canonical;
  return marian ? ModelType::kMarian : ModelType::kMultihead;
}

TensorPlace tensor_place(ModelType type, std::string_view parameter, Tying tying) {
  if (type == ModelType::kMultihead) return {.names = {std::string(parameter)}};
  if (parameter == "embedding") {
    if (tying.all()) return {.names = {kShared, kSource}};
    return {.names = {kSource, kShared}};
  }
  if (parameter == "target_embedding") return {.names = {kTarget, kShared}};
  if (parameter == "output") {
    if (tying.target_and_output) return {.names = {kTarget, kShared, kOutput}};
    return {.names = {kOutput}};
  }
  if (parameter == "logits_bias") return {.names = {"final_logits_bias"}, .may_be_missing = true};
  return place_in_layer(parameter);
}

std::vector<std::string> repeated_tensors(ModelType type) {
  if (type == ModelType::kMultihead) return {};
  return {kShared,
          kSource,
          kTarget,
          kOutput,
          "model.encoder.embed_positions.weight",
          "model.decoder.embed_positions.weight"};
}

}  // namespace mh
