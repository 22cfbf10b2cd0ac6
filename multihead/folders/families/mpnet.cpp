// MPNet (Song et al. 2020; Hugging Face's MPNetModel, MPNetForMaskedLM): RoBERTa whose layers add one bias to their scores,
// a number for each head and bucket of distances, as T5 does (Positions::kT5).
#include "multihead/folders/families/bert.h"

#include <fmt/format.h>

#include "multihead/io/config.h"

namespace mh {
namespace {

struct MpnetFields {
  int32_t buckets = kT5Buckets;

  template <class V>
  void visit(V& v) {
    v("relative_attention_num_buckets", buckets, {.low = 1, .high = 1 << 20});
  }
};

constexpr std::array kMpnetEncoderTensors = {
    TensorName{"embedding", "embeddings.word_embeddings.weight"},
    TensorName{"embedding.norm.gain", "embeddings.LayerNorm.weight", kBertRow},
    TensorName{"embedding.norm.bias", "embeddings.LayerNorm.bias", kBertRow},
    TensorName{"positions", "embeddings.position_embeddings.weight"},
    TensorName{"encoder.0.self_attention.distance_bias", "encoder.relative_attention_bias.weight",
               kBertMatrix},
    TensorName{"encoder.#.self_attention.w_q", "encoder.layer.#.attention.attn.q.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention.b_q", "encoder.layer.#.attention.attn.q.bias", kBertRow},
    TensorName{"encoder.#.self_attention.w_k", "encoder.layer.#.attention.attn.k.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention.b_k", "encoder.layer.#.attention.attn.k.bias", kBertRow},
    TensorName{"encoder.#.self_attention.w_v", "encoder.layer.#.attention.attn.v.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention.b_v", "encoder.layer.#.attention.attn.v.bias", kBertRow},
    TensorName{"encoder.#.self_attention.w_o", "encoder.layer.#.attention.attn.o.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention.b_o", "encoder.layer.#.attention.attn.o.bias", kBertRow},
    TensorName{"encoder.#.self_attention_norm.gain", "encoder.layer.#.attention.LayerNorm.weight", kBertRow},
    TensorName{"encoder.#.self_attention_norm.bias", "encoder.layer.#.attention.LayerNorm.bias", kBertRow},
    TensorName{"encoder.#.feed_forward.w_1", "encoder.layer.#.intermediate.dense.weight", kBertMatrix},
    TensorName{"encoder.#.feed_forward.b_1", "encoder.layer.#.intermediate.dense.bias", kBertRow},
    TensorName{"encoder.#.feed_forward.w_2", "encoder.layer.#.output.dense.weight", kBertMatrix},
    TensorName{"encoder.#.feed_forward.b_2", "encoder.layer.#.output.dense.bias", kBertRow},
    TensorName{"encoder.#.feed_forward_norm.gain", "encoder.layer.#.output.LayerNorm.weight", kBertRow},
    TensorName{"encoder.#.feed_forward_norm.bias", "encoder.layer.#.output.LayerNorm.bias", kBertRow},
    TensorName{"pooler.w", "pooler.dense.weight", kBertMatrix},
    TensorName{"pooler.b", "pooler.dense.bias", kBertRow},
};
constexpr std::array kMpnetTensors = joined(kMpnetEncoderTensors, kLmHeadTensors);

KnownKeys mpnet_keys() {
  KnownKeys keys = bert_keys();
  return keys.add({.obeyed = keys_of(MpnetFields())});
}

FolderPlan read_mpnet(std::string_view json, std::string_view name) {
  std::vector<std::string> wrong;
  BertSizes sizes = read_bert_sizes({.vocabulary = 30527, .pad = 1}, json, name, wrong);
  sizes.types = 0;
  constexpr int32_t kPadding = 1;  // whatever pad_token_id is
  sizes.put_position_offset(kPadding + 1, wrong);
  MpnetFields fields;
  from_json(fields, json, name, UnknownKeys::kIgnore);
  if (fields.buckets != kT5Buckets)
    wrong.push_back(
        fmt::format("relative_attention_num_buckets is {}; expected {}", fields.buckets, kT5Buckets));
  EncoderConfig config = bert_config(sizes);
  config.embedding.uncounted = kPadding;
  config.stack.positions = Positions::kT5;
  config.stack.one_bias = true;
  config.masked_words = MaskedWordsConfig{.activation = Activation::kGelu};  // whatever hidden_act is
  return encoder_plan(config, sizes.tied,
                      {.model_type = "mpnet",
                       .prefix = "mpnet.",
                       .tensors = kMpnetTensors,
                       .pooler = "pooler.dense.weight",
                       .masked_words = "lm_head.bias",
                       .no_weights = kLmHeadOthers,
                       .twins = kLmHeadTwins,
                       .prunes_heads = false},
                      name, wrong);
}

}  // namespace

extern const Family kMpnetFamily;
const Family kMpnetFamily = {"mpnet", "an encoder of MPNetModel", read_mpnet, mpnet_keys};

}  // namespace mh
