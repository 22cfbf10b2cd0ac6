#include "multihead/folders/families/config_keys.h"

#include <iterator>

#include "multihead/folders/family.h"
#include "multihead/folders/generation_keys.h"

namespace mh {
namespace {

constexpr std::string_view kNoQuantised =
    "quantised weights in safetensors are not read; expected F32, F16 or BF16, or take the model as a .gguf "
    "file";

constexpr KeyRule kEveryConfig[] = {
    // Names, versions, types of numbers.
    {.key = "architectures"},
    {.key = "transformers_version"},
    {.key = "dtype"},
    {.key = "torch_dtype"},
    {.key = "name_or_path"},
    {.key = "_name_or_path"},
    {.key = "_commit_hash"},
    {.key = "tokenizer_class"},
    {.key = "unsloth_*"},
    {.key = "transformers.js_config"},
    // What a call returns, and how it is computed, not what.
    {.key = "output_hidden_states"},
    {.key = "output_attentions"},
    {.key = "return_dict"},
    {.key = "use_return_dict"},
    {.key = "torchscript"},
    {.key = "use_bfloat16"},
    {.key = "tf_legacy_loss"},
    {.key = "xla_device"},
    {.key = "chunk_size_feed_forward"},
    {.key = "use_cache"},
    {.key = "output_past"},  // of older versions
    {.key = "attn_implementation"},
    {.key = "_attn_implementation*"},
    {.key = "_flash_attn_2_enabled"},
    {.key = "experts_implementation"},
    // Training.
    {.key = "initializer_range"},
    {.key = "gradient_checkpointing"},
    // Labels of classifiers (folders/labels.h), and heads that are not done here.
    {.key = "id2label"},
    {.key = "label2id"},
    {.key = "num_labels"},
    {.key = "_num_labels"},
    {.key = "problem_type"},
    {.key = "sentence_transformers*"},
    {.key = "sbert_ce_default_activation_function"},
    {.key = "finetuning_task"},
    {.key = "task_specific_params"},
    {.key = "classifier_dropout"},
    // Ids of tokens that this model does not ask for.
    {.key = "bos_token_id"},
    {.key = "eos_token_id"},
    {.key = "sep_token_id"},
    {.key = "cls_token_id"},
    {.key = "unk_token_id"},
    {.key = "mask_token_id"},
    {.key = "prefix"},
    // Another model than the one that is read.
    {.key = "pruned_heads", .harmless = "[{}]"},
    {.key = "tie_encoder_decoder", .harmless = "[false]"},
    {.key = "is_encoder_decoder", .harmless = "[false]", .refused = "expected false: this is one stack"},
    {.key = "add_cross_attention", .harmless = "[false]", .refused = "expected a model by itself"},
    {.key = "per_layer_config", .harmless = "[{}]", .refused = "layers of other sizes are not read"},
    {.key = "quantization_config"},  // folders/int8_matrices.h
    {.key = "compression_config", .harmless = "[{}]", .refused = kNoQuantised},
};

}  // namespace

KnownKeys keys_of_every_config() {
  KnownKeys keys{.obeyed = {"model_type", kOwnHeads},
                 .rules = {std::begin(kEveryConfig), std::end(kEveryConfig)}};
  // Before generation_config.json there was, config.json said such things (generation_part()).
  for (const std::string_view name : generation_key_names()) keys.rules.push_back({.key = name});
  return keys;
}

}  // namespace mh
