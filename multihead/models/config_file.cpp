#include "multihead/models/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "multihead/base/error.h"
#include "multihead/io/config.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

constexpr Rule<int32_t> kRequired{.required = true};
constexpr int64_t kLargestPositions = int64_t{1} << 26;  // numbers in the table of sinusoids

// The fields both model types have. Where a key may be missing, the start value is MarianConfig's default.
// problems() knows the ranges.
struct Fields {
  EncoderDecoderConfig config;
  std::vector<std::string> architectures = {"MarianMTModel"};
  std::string model_type = "marian";
  std::string dtype = "float32";
  Tying tying;
  std::optional<int32_t> target_vocabulary;
  std::optional<int32_t> decoder_start;
  std::optional<std::string> transformers_version;
  std::vector<std::string> files;
  bool writing = false;

  Fields() {
    config.activation = Activation::kGelu;
    config.scale_embedding = false;
    config.max_positions = 1024;
    config.eos_id = 0;
  }

  template <class V>
  void visit(V& v) {
    v("model_type", model_type);
    v("architectures", architectures);
    v("d_model", config.d_model, kRequired);
    v("encoder_layers", config.encoder_layers, kRequired);
    v("decoder_layers", config.decoder_layers, kRequired);
    v("encoder_attention_heads", config.encoder_heads, kRequired);
    v("decoder_attention_heads", config.decoder_heads, kRequired);
    v("encoder_ffn_dim", config.encoder_ff, kRequired);
    v("decoder_ffn_dim", config.decoder_ff, kRequired);
    v("activation_function", config.activation,
      {{"relu", Activation::kRelu},
       {"gelu", Activation::kGelu},
       {"swish", Activation::kSwish},
       {"silu", Activation::kSwish}});
    v("max_position_embeddings", config.max_positions);
    v("scale_embedding", config.scale_embedding);
    v("vocab_size", config.vocabulary_size, kRequired);
    v("decoder_vocab_size", target_vocabulary);
    v("share_encoder_decoder_embeddings", tying.source_and_target);
    v("tie_word_embeddings", tying.target_and_output);
    v("pad_token_id", config.pad_id, kRequired);
    v("eos_token_id", config.eos_id);
    v("decoder_start_token_id", decoder_start);
    v("dropout", config.dropout.residual);
    v("attention_dropout", config.dropout.weights);
    v("activation_dropout", config.dropout.activation);
    if (model_type == model_type_name(ModelType::kMultihead)) {
      v("norm", config.norm, {{"post", NormPlacement::kPost}, {"pre", NormPlacement::kPre}});
      v("head_geometry", config.geometry);
      v("positions", config.positions, kPositionNames);
    }
    v("multihead_files", files);
    if (writing) {
      constant(v, "forced_eos_token_id", config.eos_id);
      constant(v, "static_position_embeddings", config.positions == Positions::kSinusoidal);
      constant(v, "normalize_before", config.norm == NormPlacement::kPre);
      constant(v, "normalize_embedding", false);
      constant(v, "encoder_layerdrop", 0.0);
      constant(v, "decoder_layerdrop", 0.0);
      constant(v, "is_encoder_decoder", true);
      constant(v, "use_cache", true);
      v("dtype", dtype);
    } else {
      v("transformers_version", transformers_version);
    }
  }

  template <class V, class T>
  static void constant(V& v, std::string_view name, T value) {
    v(name, value);
  }
};

std::string model_type_in(std::string_view json, std::string_view name) {
  const auto document = parse_json_strictly(json, name);
  if (!document.is_object())
    throw FormatError(fmt::format("{}: expected an object, got {}", name, json_excerpt(document)));
  const auto found = document.find("model_type");
  if (found == document.end()) {
    throw FormatError(fmt::format("{}: no \"model_type\"; is it the config.json of a model?", name));
  }
  std::string type = found->is_string() ? found->get<std::string>() : json_excerpt(*found);
  if (type != "marian" && type != "multihead") {
    throw FormatError(fmt::format(
        "{}: model_type is \"{}\", expected \"marian\" or \"multihead\"; this version runs encoder-decoders "
        "that multihead trained or MarianMTModel.save_pretrained wrote",
        name, type));
  }
  return type;
}

}  // namespace

ConfigFile read_config_file(std::string_view json, std::string_view name) {
  Fields fields;
  fields.model_type = model_type_in(json, name);  // decides which fields there are
  from_json(fields, json, name, UnknownKeys::kIgnore);

  ConfigFile file;
  file.type = fields.model_type == "marian" ? ModelType::kMarian : ModelType::kMultihead;
  file.tying = fields.tying;
  file.config = fields.config;
  file.config.share_embeddings = fields.tying.all();
  file.config.decoder_start_id = fields.decoder_start.value_or(fields.config.pad_id);
  // MarianMTModel, too, looks at decoder_vocab_size only when the sides are separate.
  const int32_t target = fields.target_vocabulary.value_or(fields.config.vocabulary_size);
  const bool one_vocabulary = fields.tying.source_and_target || target == fields.config.vocabulary_size;
  file.config.target_vocabulary_size = one_vocabulary ? 0 : target;
  // transformers copies keys it does not know, but not the files they speak of.
  if (!fields.transformers_version) file.files = fields.files;

  std::vector<std::string> wrong = problems(file.config);
  if (wrong.empty() && int64_t{file.config.max_positions} * file.config.d_model > kLargestPositions) {
    wrong.push_back(fmt::format("max_position_embeddings is {}; expected at most {} with d_model {}",
                                file.config.max_positions, kLargestPositions / file.config.d_model,
                                file.config.d_model));
  }
  if (!wrong.empty()) throw FormatError(fmt::format("{}: {}", name, fmt::join(wrong, "; ")));
  return file;
}

std::string write_config_file(const ConfigFile& file) {
  Fields fields;
  fields.writing = true;
  fields.model_type = model_type_name(file.type);
  fields.architectures = {file.type == ModelType::kMarian ? "MarianMTModel" : "MultiheadTransformer"};
  fields.config = file.config;
  fields.tying = file.tying;
  fields.target_vocabulary = file.config.target_vocabulary();
  fields.decoder_start = file.config.decoder_start_id;
  fields.files = file.files;
  return to_json(fields);
}

}  // namespace mh
