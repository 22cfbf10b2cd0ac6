// GPT-Neo (Black et al. 2021; Hugging Face's GPTNeoForCausalLM), the family of TinyStories: a causal decoder with layer norms
// before its sublayers and learned positions. Scores are not scaled, queries, keys and values have no biases, and layers of the
// type "local" see a window.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/families/decoder_folder.h"
#include "multihead/folders/known_keys.h"
#include "multihead/io/config.h"
#include "multihead/io/strict_json.h"
#include "multihead/models/config_checks.h"

namespace mh {
namespace {

/// Where a key may be missing, the start value is GPTNeoConfig's default.
struct GptNeoFields {
  int32_t vocabulary = 50257, positions = 2048, d_model = 2048, layers = 24, heads = 16, window = 256;
  std::optional<int32_t> d_ff = {};
  Activation activation = Activation::kGeluTanh;
  float epsilon = 1e-5f, dropout = 0, attention_dropout = 0;
  bool tied = true;
  std::optional<int32_t> start = 50256, end = 50256, pad = {};

  template <class V>
  void visit(V& v) {
    visit_decoder(v, *this);
    v("num_layers", layers, {.low = 1, .high = 1024});
    v("num_heads", heads, {.low = 1, .high = 1024});
    v("intermediate_size", d_ff, {.low = 1, .high = 1 << 20});
    v("window_size", window, {.low = 1, .high = 1 << 20});
    v("activation_function", activation, kHuggingFaceActivations);
    v("layer_norm_epsilon", epsilon, {.low = 1e-30f, .high = 1});
    v("resid_dropout", dropout, {.low = 0, .high = 0.999f});
  }
};

/// Which layers are local: by "attention_layers", which transformers writes beside "attention_types", or by these,
/// [[["global", "local"], 12]]: types and how often they repeat.
class LocalLayers {
 public:
  LocalLayers(int32_t layers, std::vector<std::string>& wrong) : layers_(layers), wrong_(wrong) {}

  std::vector<bool> read(const nlohmann::json& config) {
    const nlohmann::json list = value_of(config, "attention_layers"),
                         types = value_of(config, "attention_types");
    std::vector<bool> local;
    if (!list.is_null()) local = read_list(list);
    if (!types.is_null() || list.is_null()) {
      const std::vector<bool> by_types = read_types(types.is_null() ? default_types() : types);
      if (!list.is_null() && wrong_.empty() && by_types != local)
        wrong_.emplace_back(
            "attention_layers and attention_types differ; keep the one that the model was trained with");
      local = by_types;
    }
    local.resize(static_cast<size_t>(layers_));  // where something is wrong
    return local;
  }

 private:
  static nlohmann::json value_of(const nlohmann::json& config, const char* key) {
    const auto found = config.find(key);
    return found != config.end() ? *found : nlohmann::json();
  }
  static nlohmann::json default_types() { return nlohmann::json::parse(R"([[["global","local"],12]])"); }

  void refuse(const char* key, const std::string& why) { wrong_.push_back(fmt::format("{}: {}", key, why)); }
  void check_size(const char* key, const std::vector<bool>& local) {
    if (std::ssize(local) != layers_)
      refuse(key,
             fmt::format("{} types; expected one for each layer, num_layers is {}", local.size(), layers_));
  }
  bool add(const char* key, const nlohmann::json& type, std::vector<bool>& local) {
    const bool known = type == "global" || type == "local";
    if (known) local.push_back(type == "local");
    if (!known) refuse(key, fmt::format("expected \"global\" or \"local\", got {}", json_excerpt(type)));
    return known;
  }

  std::vector<bool> read_list(const nlohmann::json& list) {
    constexpr const char* kKey = "attention_layers";
    std::vector<bool> local;
    if (!list.is_array()) {
      refuse(kKey, "expected a list of \"global\" and \"local\"");
      return local;
    }
    for (const auto& type : list) {
      if (!add(kKey, type, local)) return local;
    }
    check_size(kKey, local);
    return local;
  }

  std::vector<bool> read_types(const nlohmann::json& types) {
    constexpr const char* kKey = "attention_types";
    constexpr const char* kExpected =
        "expected lists of types and how often they repeat, [[[\"global\", \"local\"], 12]]";
    std::vector<bool> local;
    const auto stop = [&](const char* why) {
      refuse(kKey, why);
      return local;
    };
    if (!types.is_array()) return stop(kExpected);
    for (const auto& item : types) {
      if (!item.is_array() || item.size() != 2 || !item[0].is_array() || !item[1].is_number_unsigned())
        return stop(kExpected);
      const auto times = item[1].get<uint64_t>();
      if (times > 1024 || times * item[0].size() > 1024) return stop("more than 1024 layers");
      for (uint64_t i = 0; i < times; ++i) {
        for (const auto& type : item[0]) {
          if (!add(kKey, type, local)) return local;
        }
      }
    }
    check_size(kKey, local);
    return local;
  }

  int32_t layers_;
  std::vector<std::string>& wrong_;
};

constexpr std::array kGptNeoNames = {
    TensorName{"embedding", "wte.weight"},
    TensorName{"positions", "wpe.weight"},
    TensorName{"decoder.final_norm.gain", "ln_f.weight", kOneRow},
    TensorName{"decoder.final_norm.bias", "ln_f.bias", kOneRow},
    TensorName{"decoder.#.self_attention_norm.gain", "h.#.ln_1.weight", kOneRow},
    TensorName{"decoder.#.self_attention_norm.bias", "h.#.ln_1.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_q", "h.#.attn.attention.q_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.w_k", "h.#.attn.attention.k_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.w_v", "h.#.attn.attention.v_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.w_o", "h.#.attn.attention.out_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_o", "h.#.attn.attention.out_proj.bias", kOneRow},
    TensorName{"decoder.#.feed_forward_norm.gain", "h.#.ln_2.weight", kOneRow},
    TensorName{"decoder.#.feed_forward_norm.bias", "h.#.ln_2.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_1", "h.#.mlp.c_fc.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_1", "h.#.mlp.c_fc.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_2", "h.#.mlp.c_proj.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_2", "h.#.mlp.c_proj.bias", kOneRow},
};
// Masks that older versions saved.
constexpr std::array<std::string_view, 2> kGptNeoNoWeights = {".attn.attention.bias",
                                                              ".attn.attention.masked_bias"};

FolderPlan read_gpt_neo(std::string_view json, std::string_view name) {
  GptNeoFields fields;
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  DecoderDraft draft =
      decoder_draft(fields, {{"bos_token_id", fields.start}, {"eos_token_id", fields.end}}, name);
  if (fields.d_model % fields.heads != 0)
    draft.wrong.push_back(no_divisor("num_heads", fields.heads, "hidden_size", fields.d_model));
  const std::vector<bool> local =
      LocalLayers(fields.layers, draft.wrong).read(parse_json_strictly(json, name));
  for (const bool near : local) {
    LayerConfig layer{
        .self_attention = {.heads = fields.heads, .biases = Biases::kOutput, .scale = 1.0f},
        .feed_forward = {.d_ff = fields.d_ff.value_or(4 * fields.d_model), .activation = fields.activation}};
    if (near) layer.mask = StackMask::sliding_window(fields.window);
    draft.config.stack.layers.push_back(layer);
  }
  return decoder_plan({.model_type = "gpt_neo",
                       .base = "transformer.",
                       .tensors = kGptNeoNames,
                       .token_labels = "classifier",
                       .no_weights = kGptNeoNoWeights},
                      std::move(draft), kDecoderFields, json, name, divided_heads("num_heads"));
}

constexpr KeyAlias kGptNeoAliases[] = {{"num_attention_heads", "num_heads"},
                                       {"num_hidden_layers", "num_layers"}};

KnownKeys gpt_neo_keys() {
  KnownKeys keys{.obeyed = keys_of(GptNeoFields()),
                 .rules = {{.key = "embed_dropout"}, {.key = "summary_*"}}};
  keys.obeyed.insert({"attention_layers", "attention_types"});
  return keys.add(causal_keys());
}

constexpr OracleAttention kGptNeoAttention[] = {{.module = "attn.attention",
                                                 .queries = "attn.attention.q_proj",
                                                 .keys = "attn.attention.k_proj",
                                                 .output = "attn.attention.out_proj",
                                                 .own_function = "gpt_neo"}};
constexpr OracleStack kGptNeoStack[] = {
    {.layers = "h", .states = "ln_f", .attentions = kGptNeoAttention, .second_linear = "mlp.c_proj"}};
constexpr OracleModules kGptNeoOracle = {.stacks = kGptNeoStack};

}  // namespace

extern const Family kGptNeoFamily;
const Family kGptNeoFamily = {"gpt_neo",      "a causal decoder of GPTNeoForCausalLM",
                              read_gpt_neo,   gpt_neo_keys,
                              kGptNeoAliases, &kGptNeoOracle};

}  // namespace mh
