// What the folders of encoder-decoders in fairseq's manner (Marian, BART, mBART, M2M-100) have in common: fields of config.json, and the
// modules of Hugging Face's classes.
#pragma once

#include <cstdint>
#include <span>

#include "multihead/folders/family_names.h"
#include "multihead/folders/known_keys.h"
#include "multihead/folders/oracle_modules.h"
#include "multihead/io/config.h"
#include "multihead/models/config_names.h"
#include "multihead/models/translator_shape.h"

namespace mh {

/// Whether a file must say the sizes, or a missing one is that of the configuration class.
enum class SizesMayMiss { kNo, kYes };

/// Visits the sizes of both stacks and of the embeddings.
template <class V>
void visit_sizes(V& v, TranslatorShape& shape, SizesMayMiss may_miss) {
  const bool required = may_miss == SizesMayMiss::kNo;
  const Rule<int32_t> widths{.low = 1, .high = 1 << 16, .required = required},
      layers{.low = 1, .high = 1024, .required = required},
      inner{.low = 1, .high = 1 << 20, .required = required};
  v("d_model", shape.d_model, widths);
  v("encoder_layers", shape.encoder_layers, layers);
  v("decoder_layers", shape.decoder_layers, layers);
  v("encoder_attention_heads", shape.encoder_heads, widths);
  v("decoder_attention_heads", shape.decoder_heads, widths);
  v("encoder_ffn_dim", shape.encoder_ff, inner);
  v("decoder_ffn_dim", shape.decoder_ff, inner);
  v("activation_function", shape.activation, kHuggingFaceActivations);
  v("max_position_embeddings", shape.max_positions, {.low = 1, .high = 1 << 20});
  v("scale_embedding", shape.scale_embedding);
  v("vocab_size", shape.vocabulary_size, {.low = 2, .high = 1 << 24, .required = required});
}

template <class V>
void visit_dropout(V& v, TranslatorShape& shape) {
  v("dropout", shape.dropout.residual);
  v("attention_dropout", shape.dropout.weights);
  v("activation_dropout", shape.dropout.activation);
}

/// The tables of embeddings, of which some may be one, and of the output layer.
inline constexpr const char *kSharedTable = "model.shared.weight",
                            *kSourceTable = "model.encoder.embed_tokens.weight",
                            *kTargetTable = "model.decoder.embed_tokens.weight",
                            *kOutputTable = "lm_head.weight";
inline constexpr const char* kLogitsBias = "final_logits_bias";

/// The names of these fields in messages.
inline constexpr ConfigNames kTranslatorFields = {.vocabulary = "vocab_size",
                                                  .target_vocabulary = "decoder_vocab_size",
                                                  .encoder_heads = "encoder_attention_heads",
                                                  .decoder_heads = "decoder_attention_heads",
                                                  .encoder_ff = "encoder_ffn_dim",
                                                  .decoder_ff = "decoder_ffn_dim",
                                                  .max_positions = "max_position_embeddings",
                                                  .pad_id = "pad_token_id",
                                                  .eos_id = "eos_token_id",
                                                  .start_id = "decoder_start_token_id"};

/// num_attention_heads is the encoder's, as num_hidden_layers.
inline constexpr KeyAlias kTranslatorAliases[] = {{"hidden_size", "d_model"},
                                                  {"num_attention_heads", "encoder_attention_heads"},
                                                  {"num_hidden_layers", "encoder_layers"}};

/// Keys of every such class that change nothing, or that have to say that there are two stacks.
inline constexpr KeyRule kTranslatorRules[] = {
    {.key = "init_std"},
    {.key = "encoder_layerdrop"},
    {.key = "decoder_layerdrop"},
    {.key = "classif_dropout"},
    {.key = "is_decoder", .harmless = "[false]", .refused = "expected an encoder-decoder"},
    {.key = "is_encoder_decoder", .harmless = "[true]", .refused = "expected an encoder-decoder"},
};

/// The modules of classes with norms behind the sums of sublayers.
inline constexpr OracleAttention kSummedAttentions[] = {{.module = "self_attn",
                                                         .queries = "self_attn.q_proj",
                                                         .keys = "self_attn.k_proj",
                                                         .output = "self_attn.out_proj",
                                                         .sum_norm = "self_attn_layer_norm"},
                                                        {.site = "cross_attention",
                                                         .module = "encoder_attn",
                                                         .queries = "encoder_attn.q_proj",
                                                         .keys = "encoder_attn.k_proj",
                                                         .output = "encoder_attn.out_proj",
                                                         .sum_norm = "encoder_attn_layer_norm"}};
inline constexpr OracleStack kSummedStacks[] = {
    {.name = "encoder",
     .layers = "encoder.layers",
     .attentions = std::span(kSummedAttentions).first(1),
     .second_linear = "fc2"},
    {.name = "decoder", .layers = "decoder.layers", .attentions = kSummedAttentions, .second_linear = "fc2"}};
inline constexpr OracleModules kSummedOracle = {.stacks = kSummedStacks};

}  // namespace mh
