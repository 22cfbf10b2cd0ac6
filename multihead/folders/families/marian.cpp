// Two families. "marian" is Hugging Face's MarianMTModel: a post-norm encoder-decoder with sinusoidal
// positions. "multihead" is our own format: the same fields, more fields for what Marian cannot express,
// and tensors under the names of this library.
#include "multihead/folders/families/marian.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/folders/families/translator_fields.h"
#include "multihead/folders/family_names.h"
#include "multihead/folders/known_keys.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/write_parameters.h"
#include "multihead/io/config.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {
namespace {

constexpr std::string_view kMarian = "marian", kMultihead = "multihead";

// The fields both model types have. Where a key may be missing, the start value is MarianConfig's default.
// What must hold between them problems_of() knows.
struct MarianFields {
  TranslatorShape shape;
  std::vector<std::string> architectures = {"MarianMTModel"};
  std::string model_type = "marian";
  std::string dtype = "float32";
  Tying tying;
  std::optional<int32_t> target_vocabulary;
  std::optional<int32_t> decoder_start;
  std::optional<std::string> transformers_version;
  std::vector<std::string> files;
  bool writing = false;

  MarianFields() {
    shape.activation = Activation::kGelu;
    shape.scale_embedding = false;
    shape.max_positions = 1024;
    shape.eos_id = 0;
  }

  template <class V>
  void visit(V& v) {
    v("model_type", model_type);
    v("architectures", architectures);
    visit_sizes(v, shape, SizesMayMiss::kNo);
    v("decoder_vocab_size", target_vocabulary, {.low = 2, .high = 1 << 24});
    v("share_encoder_decoder_embeddings", tying.source_and_target);
    v("tie_word_embeddings", tying.target_and_output);
    v("pad_token_id", shape.pad_id, {.low = 0, .high = kTokenIds.high, .required = true});
    v("eos_token_id", shape.eos_id, {.low = 0, .high = kTokenIds.high});
    v("decoder_start_token_id", decoder_start, {.low = 0, .high = kTokenIds.high});
    visit_dropout(v, shape);
    if (model_type == kMultihead) {
      v("norm", shape.norm, {{"post", NormPlacement::kPost}, {"pre", NormPlacement::kPre}});
      v("head_geometry", shape.geometry);
      if (!writing || !shape.own_heads.empty()) v("own_heads", shape.own_heads);
      v("positions", shape.positions, kWriterPositionNames);
      v("normalize_embedding", shape.norm_embeddings);
      if (!writing || shape.position_offset != 0)
        v("position_offset", shape.position_offset, {.low = 0, .high = 1024});
      if (!writing || shape.sinusoids != SinusoidForm::kMarian)
        v("sinusoids", shape.sinusoids, kSinusoidFormNames);
      visit_rarer(v);
    }
    v("multihead_files", files);
    if (writing) {
      constant(v, "forced_eos_token_id", shape.eos_id);
      constant(v, "static_position_embeddings", shape.positions == Positions::kSinusoidal);
      constant(v, "normalize_before", shape.norm == NormPlacement::kPre);
      if (model_type == kMarian) constant(v, "normalize_embedding", false);
      constant(v, "encoder_layerdrop", 0.0);
      constant(v, "decoder_layerdrop", 0.0);
      constant(v, "is_encoder_decoder", true);
      constant(v, "use_cache", true);
      v("dtype", dtype);
    } else {
      v("transformers_version", transformers_version);
    }
  }

  /// What T5 has otherwise than the paper's Transformer; written where it is.
  template <class V>
  void visit_rarer(V& v) {
    const TranslatorShape usual;
    const auto differs = [&](auto TranslatorShape::*field) {
      return !writing || shape.*field != usual.*field;
    };
    if (differs(&TranslatorShape::norm_kind))
      v("norm_kind", shape.norm_kind, {{"layer", NormKind::kLayer}, {"rms", NormKind::kRms}});
    if (differs(&TranslatorShape::norm_epsilon)) v("norm_epsilon", shape.norm_epsilon);
    if (differs(&TranslatorShape::gated)) v("gated_feed_forward", shape.gated);
    if (differs(&TranslatorShape::feed_forward_bias)) v("feed_forward_bias", shape.feed_forward_bias);
    if (differs(&TranslatorShape::one_bias)) v("one_position_bias", shape.one_bias);
    if (differs(&TranslatorShape::buckets)) {
      v("position_buckets", shape.buckets.count);
      v("farthest_position", shape.buckets.farthest);
    }
    if (differs(&TranslatorShape::output_bias)) v("output_bias", shape.output_bias);
    if (differs(&TranslatorShape::scale_states)) v("scale_decoder_outputs", shape.scale_states);
  }

  template <class V, class T>
  static void constant(V& v, std::string_view name, T value) {
    v(name, value);
  }
};

MarianFields read_fields(std::string_view json, std::string_view name, std::string_view model_type) {
  MarianFields fields;
  fields.model_type = model_type;  // decides which fields there are
  from_json(fields, json, name, UnknownKeys::kIgnore);

  TranslatorShape& shape = fields.shape;
  const Tying tying = fields.tying;
  shape.own_output = model_type == kMultihead && tying.source_and_target && !tying.target_and_output;
  shape.share_embeddings = tying.all() || shape.own_output;
  shape.decoder_start_id = fields.decoder_start.value_or(shape.pad_id);
  const int32_t target = fields.target_vocabulary.value_or(shape.vocabulary_size);
  shape.target_vocabulary_size = target == shape.vocabulary_size ? 0 : target;

  std::vector<std::string> wrong = problems_of(shape, kTranslatorFields);
  if (tying.source_and_target && !tying.all() && shape.target_vocabulary_size != 0)
    wrong.push_back(fmt::format("decoder_vocab_size is {}; one embedding for both sides needs vocab_size, {}",
                                target, shape.vocabulary_size));
  if (!wrong.empty()) throw FormatError(fmt::format("{}: {}", name, fmt::join(wrong, "; ")));
  return fields;
}

EncoderDecoderConfig config_of(const MarianFields& fields) {
  EncoderDecoderConfig config = fields.shape.config();
  config.tied = fields.tying.target_and_output;  // also where each side has its own table
  return config;
}

FolderPlan read_encoder_decoder(std::string_view json, std::string_view name, std::string_view model_type) {
  const MarianFields fields = read_fields(json, name, model_type);
  const EncoderDecoderConfig config = config_of(fields);
  const Tying tying = fields.tying;
  FolderPlan plan{
      .model_type = std::string(model_type),
      .least_parameters = least_parameters(config),
      .make = [config](const TensorFiles&) { return std::make_unique<EncoderDecoder>(config); },
      .place = [type = std::string(model_type),
                tying](std::string_view parameter) { return encoder_decoder_place(type, parameter, tying); },
      .field_of_longest = std::string(kTranslatorFields.max_positions)};
  if (model_type == kMarian) {
    plan.no_weight = [config, tying](const std::string& tensor, const TensorFiles& files, const Model& model,
                                     Differences& differences) {
      return is_no_parameter(tensor, files, model, tying, config, differences);
    };
  }
  // transformers copies keys it does not know, but not the files that they name.
  if (!fields.transformers_version) plan.files = fields.files;
  return plan;
}

FolderPlan read_marian(std::string_view json, std::string_view name) {
  return read_encoder_decoder(json, name, kMarian);
}
FolderPlan read_multihead(std::string_view json, std::string_view name) {
  return read_encoder_decoder(json, name, kMultihead);
}

KnownKeys encoder_decoder_keys(std::string_view model_type) {
  constexpr std::string_view kNoSuch = "expected what MarianMTModel computes";
  MarianFields fields;
  fields.model_type = model_type;
  KnownKeys keys{.obeyed = keys_of(fields),
                 .rules = {std::begin(kTranslatorRules), std::end(kTranslatorRules)}};
  keys.rules.insert(
      keys.rules.end(),
      {{.key = "static_position_embeddings", .harmless = "[true]", .refused = kNoSuch},
       {.key = "normalize_before", .harmless = "[false]", .refused = kNoSuch},
       {.key = "normalize_embedding", .harmless = "[false]", .refused = kNoSuch},
       {.key = "add_final_layer_norm", .harmless = "[false]", .refused = kNoSuch},
       {.key = "extra_pos_embeddings"},  // of older versions, which did not read these either
       {.key = "add_bias_logits"},
       {.key = "pad_index"},
       {.key = "num_labels"},
       {.key = "head_geometry", .refused = "it needs model_type \"multihead\""},
       {.key = "own_heads", .refused = "it needs model_type \"multihead\""},
       {.key = "norm", .harmless = "[\"post\"]", .refused = "it needs model_type \"multihead\""},
       {.key = "positions", .harmless = "[\"sinusoidal\"]", .refused = "it needs model_type \"multihead\""}});
  return keys;
}
KnownKeys marian_keys() {
  return encoder_decoder_keys(kMarian);
}
KnownKeys multihead_keys() {
  KnownKeys keys = encoder_decoder_keys(kMultihead);
  // Written beside `norm` and `positions`, which count.
  for (const char* key : {"normalize_before", "static_position_embeddings"}) keys.obeyed.insert(key);
  return keys;
}

}  // namespace

extern const Family kMarianFamily;
const Family kMarianFamily = {kMarian,
                              "an encoder-decoder of MarianMTModel",
                              read_marian,
                              marian_keys,
                              kTranslatorAliases,
                              &kSummedOracle,
                              encoder_decoder_contents,
                              FamilyTexts::kSourceAndTarget};
extern const Family kMultiheadFamily;
const Family kMultiheadFamily = {kMultihead,
                                 "an encoder-decoder of multihead",
                                 read_multihead,
                                 multihead_keys,
                                 {},
                                 nullptr,
                                 encoder_decoder_contents,
                                 FamilyTexts::kSourceAndTarget};

std::string_view natural_model_type(const EncoderDecoderConfig& config) {
  // How heads start is no part of a trained model.
  const TranslatorShape shape = shape_of(config);
  HeadGeometry geometry = shape.geometry;
  geometry.heads = HeadGeometry().heads;
  geometry.initialisation = HeadGeometry().initialisation;
  const bool canonical = geometry == HeadGeometry() && shape.own_heads.empty();
  const TranslatorShape usual;
  const bool marian = shape.norm == NormPlacement::kPost && shape.positions == Positions::kSinusoidal &&
                      shape.sinusoids == usual.sinusoids && shape.position_offset == 0 &&
                      !shape.norm_embeddings && canonical && shape.norm_kind == usual.norm_kind &&
                      shape.norm_epsilon == usual.norm_epsilon && !shape.gated && shape.feed_forward_bias &&
                      shape.output_bias && !shape.scale_states && !shape.own_output;
  return marian ? kMarian : kMultihead;
}

EncoderDecoderConfig read_encoder_decoder_config(std::string_view json, std::string_view name) {
  return config_of(read_fields(json, name, kMultihead));
}

std::string write_encoder_decoder_config(const TranslatorShape& shape, std::string_view model_type,
                                         const Tying& tying, const std::vector<std::string>& files) {
  MarianFields fields;
  fields.writing = true;
  fields.model_type = model_type;
  fields.architectures = {model_type == kMarian ? "MarianMTModel" : "MultiheadTransformer"};
  fields.shape = shape;
  fields.tying = tying;
  fields.target_vocabulary = shape.target_vocabulary();
  fields.decoder_start = shape.decoder_start_id;
  fields.files = files;
  return to_json(fields);
}

Tying tying_of(const EncoderDecoder& model) {
  Tying tying;
  model.visit(ConstParameterVisitor([&](const std::string& name, const Parameter&) {
    if (name == "target_embedding") tying.source_and_target = false;
    if (name == "output") tying.target_and_output = false;
  }));
  return tying;
}

std::string write_encoder_decoder_parameters(const EncoderDecoder& model, std::string_view model_type) {
  const Tying tying = tying_of(model);
  return parameters_as_file(
      model, [&](std::string_view parameter) { return encoder_decoder_place(model_type, parameter, tying); });
}

std::unique_ptr<EncoderDecoder> read_encoder_decoder_parameters(const TensorFiles& files,
                                                                const EncoderDecoderConfig& config) {
  const FolderPlan plan{
      .model_type = std::string(kMultihead),
      .least_parameters = least_parameters(config),
      .make = [&](const TensorFiles&) { return std::make_unique<EncoderDecoder>(config); },
      .place = [](std::string_view parameter) { return encoder_decoder_place(kMultihead, parameter, {}); }};
  std::unique_ptr<Model> model = read_parameters(files, plan);
  return std::unique_ptr<EncoderDecoder>(static_cast<EncoderDecoder*>(model.release()));
}

}  // namespace mh
