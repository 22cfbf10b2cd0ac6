// SmolLM3 (Hugging Face 2025, SmolLM3ForCausalLM): Llama of which some layers, every fourth one, have no positions (NoPE, Yang et
// al. 2025).
#include "multihead/folders/families/llama_kind.h"

#include <fmt/format.h>

namespace mh {
namespace {

struct SmolLm3Fields : LlamaFields {
  std::optional<std::vector<int32_t>> turns = {};  // 1 or 0 for each layer, whether it has positions
  int32_t none_every = 4;                          // where that is missing

  template <class V>
  void visit(V& v) {
    LlamaFields::visit(v);
    v("no_rope_layers", turns);
    v("no_rope_layer_interval", none_every, {.low = 1, .high = 1 << 20});
  }
};

constexpr LlamaKind kSmolLm3 = {
    .model_type = "smollm3", .feed_forward_biases = true, .window = LlamaKind::Window::kOwn};

FolderPlan read_smollm3(std::string_view json, std::string_view name) {
  SmolLm3Fields fields;
  static_cast<LlamaFields&>(fields) = {.vocabulary = 128256,
                                       .positions = 32768,
                                       .d_model = 2048,
                                       .layers = 36,
                                       .heads = 16,
                                       .key_heads = 4,
                                       .tied = true,
                                       .base = 2000000,
                                       .start = 128000,
                                       .end = 128001,
                                       .pad = 128004};
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  DecoderDraft draft = llama_draft(kSmolLm3, fields, name);
  std::vector<LayerConfig>& layers = draft.config.stack.layers;
  if (fields.turns && fields.turns->size() < layers.size())
    draft.wrong.push_back(
        fmt::format("no_rope_layers has {} numbers; expected one for each layer, num_hidden_layers is {}",
                    fields.turns->size(), layers.size()));
  check_window(fields.layer_types, fields.window, draft.wrong);
  for (size_t i = 0; i < layers.size() && draft.wrong.empty(); ++i) {
    const bool turns =
        fields.turns ? (*fields.turns)[i] != 0 : (i + 1) % static_cast<size_t>(fields.none_every) != 0;
    if (!turns) layers[i].positions = Positions::kNone;
    if (fields.window && has_window(fields.layer_types, i, fields.uses_window && !turns))
      layers[i].mask = StackMask::sliding_window(*fields.window);
  }
  return llama_plan(kSmolLm3, fields, std::move(draft), json, name);
}

KnownKeys smollm3_keys() {
  KnownKeys keys = llama_kind_keys(kSmolLm3, keys_of(SmolLm3Fields()));
  keys.obeyed.erase("max_window_layers");
  keys.rules.push_back({.key = "max_window_layers"});
  return keys;
}

}  // namespace

extern const Family kSmolLm3Family;
const Family kSmolLm3Family = {
    "smollm3", "a causal decoder of SmolLM3ForCausalLM", read_smollm3, smollm3_keys, {}, &kLlamaOracle};

}  // namespace mh
