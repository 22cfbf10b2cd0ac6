// What the tensors of an encoder-decoder are called in its files, and which of them are no parameters.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/family_names.h"
#include "multihead/kernels/embedding.h"

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
  constexpr std::array kEmbeddings = {kShared, kSource, kTarget, kOutput};
  if (std::find(kEmbeddings.begin(), kEmbeddings.end(), tensor) == kEmbeddings.end()) return false;
  if (!tying.all() && tensor == kOutput && files.contains(kTarget) && !files.same(kOutput, kTarget)) {
    differences.other(
        fmt::format("{} is not {}, though tie_word_embeddings is true; set it to false", kOutput, kTarget));
  }
  if (!tying.all() && tying.source_and_target && tensor == kShared && files.contains(kSource) &&
      !files.same(kShared, kSource))
    differences.other(fmt::format("{} is not {}, though config.json ties them", kShared, kSource));
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
    if (tying.source_and_target) place.names.emplace_back(kShared);
    return place;
  };
  if (parameter == "embedding") {
    if (tying.all()) return {.names = {kShared, kSource}};
    return with_shared({.names = {kSource}});
  }
  if (parameter == "target_embedding") return with_shared({.names = {kTarget}});
  if (parameter == "output") {
    if (!tying.target_and_output) return {.names = {kOutput}};
    TensorPlace place = with_shared({.names = {kTarget}});
    place.names.emplace_back(kOutput);
    return place;
  }
  if (parameter == "logits_bias") return {.names = {"final_logits_bias"}, .may_be_missing = true};
  return place_in_layer(parameter);
}

}  // namespace mh
