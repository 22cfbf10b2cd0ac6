// BART (Lewis et al. 2020; Hugging Face's BartForConditionalGeneration) and mBART (Liu et al. 2020): encoder-decoders with a
// norm of the embeddings, and learned positions, whose table has two rows before that of position 0. BART norms the sums of
// sublayers, mBART what sublayers read, with a norm at the end of each stack. M2M-100 (Fan et al. 2020), whose class is that of
// NLLB-200, too, is mBART with sinusoids, in which a padding token has no place, and without the norm of the embeddings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/families/translator_fields.h"
#include "multihead/folders/family_names.h"
#include "multihead/folders/known_keys.h"
#include "multihead/folders/labels.h"

namespace mh {
namespace {

/// Where a key may be missing, the start value is that of the configuration class: here BART's.
struct BartFields {
  TranslatorShape shape = {.vocabulary_size = 50265,
                           .d_model = 1024,
                           .encoder_layers = 12,
                           .decoder_layers = 12,
                           .encoder_heads = 16,
                           .decoder_heads = 16,
                           .positions = Positions::kLearned,
                           .encoder_ff = 4096,
                           .decoder_ff = 4096,
                           .activation = Activation::kGelu,
                           .max_positions = 1024,
                           .position_offset = 2,
                           .scale_embedding = false,
                           .norm_embeddings = true,
                           .pad_id = 1,
                           .eos_id = 2};
  bool tied = true;
  std::optional<int32_t> start = 0, decoder_start = {};

  template <class V>
  void visit(V& v) {
    visit_sizes(v, shape, SizesMayMiss::kYes);
    v("tie_word_embeddings", tied);
    v("pad_token_id", shape.pad_id, {.low = 0, .high = kTokenIds.high});
    v("bos_token_id", start, kTokenIds);
    v("eos_token_id", shape.eos_id, {.low = 0, .high = kTokenIds.high});
    v("decoder_start_token_id", decoder_start, kTokenIds);
    visit_dropout(v, shape);
  }
};

BartFields mbart_fields() {
  BartFields fields;
  fields.shape.norm = NormPlacement::kPre;
  return fields;
}

BartFields m2m_100_fields() {
  BartFields fields = mbart_fields();
  fields.shape.vocabulary_size = 128112;
  fields.shape.positions = Positions::kSinusoidal;
  fields.shape.sinusoids = SinusoidForm::kFairseq;
  fields.shape.activation = Activation::kRelu;
  fields.shape.scale_embedding = true;
  fields.shape.norm_embeddings = false;
  fields.decoder_start = 2;
  return fields;
}

constexpr std::string_view kBartBase = "model.";
constexpr std::array kTables = {kSharedTable, kSourceTable, kTargetTable, kOutputTable};

/// The model alone, as BartModel saves it, has no "model." before its names.
std::string without_base(std::string_view name) {
  return std::string(name.starts_with(kBartBase) ? name.substr(kBartBase.size()) : name);
}

bool has_either(const TensorFiles& files, std::string_view name) {
  return files.contains(name) || files.contains(without_base(name));
}

TensorPlace bart_place(std::string_view parameter, bool tied) {
  TensorPlace place;
  if (parameter == "embedding") {
    place.names = tied ? std::vector<std::string>(kTables.begin(), kTables.end())
                       : std::vector<std::string>{kSourceTable, kSharedTable};
  } else if (parameter == "target_embedding") {
    place.names = {kTargetTable, kSharedTable};
  } else if (parameter == "output") {
    place.names = {kOutputTable};
  } else if (parameter.starts_with("labels.")) {
    return text_label_place(parameter);
  } else {
    place = encoder_decoder_place("marian", parameter, {});
  }
  for (size_t i = 0, count = place.names.size(); i < count; ++i) {
    if (place.names[i].starts_with(kBartBase)) place.names.push_back(without_base(place.names[i]));
  }
  return place;
}

/// Tied tables are one, however often a file has it; the shared one of untied tables is read by nobody.
bool is_no_weight_of_bart(const std::string& tensor, const TensorFiles& files, bool tied,
                          Differences& differences) {
  // Of older files; sinusoids are computed whatever a file has.
  if (tensor.ends_with("coder.version") || tensor.ends_with(".embed_positions.weights")) return true;
  const auto is_it = [&](std::string_view name) { return tensor == name || tensor == without_base(name); };
  if (std::none_of(kTables.begin(), kTables.end(), is_it)) return false;
  if (!tied) return is_it(kSharedTable);
  for (const std::string& read : bart_place("embedding", tied).names) {
    if (!files.contains(read)) continue;
    if (!files.same(tensor, read))
      differences.other(
          fmt::format("{} is not {}, though tie_word_embeddings is true; set it to false", tensor, read));
    return true;
  }
  return true;
}

FolderPlan read_bart_kind(std::string_view model_type, BartFields fields, std::string_view json,
                          std::string_view name) {
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  // As generate() of transformers begins.
  fields.shape.decoder_start_id = fields.decoder_start.value_or(fields.start.value_or(-1));
  if (fields.shape.positions == Positions::kSinusoidal)
    fields.shape.position_offset = fields.shape.pad_id + 1;
  if (const std::vector<std::string> wrong = problems_of(fields.shape, kTranslatorFields); !wrong.empty())
    throw FormatError(fmt::format("{}: {}", name, fmt::join(wrong, "; ")));
  const EncoderDecoderConfig config = fields.shape.config();
  const bool tied = fields.tied;
  const std::optional<Labels> labels = read_labels(json, name);
  return {
      .model_type = std::string(model_type),
      .least_parameters = least_parameters(config),
      .make =
          [config, tied, labels, model_type, biased = model_type != "m2m_100"](const TensorFiles& files) {
            EncoderDecoderConfig all = config;
            all.output_bias = biased || files.contains(kLogitsBias);  // of M2M-100 the class has none
            all.tied = tied;
            // Transformers 4 shared the tables of both sides, whatever became of the output's.
            all.share_embeddings = tied || !has_either(files, kSourceTable);
            if (labels && labels->of == LabelsOf::kTexts &&
                files.contains(text_label_place("labels.w").names.front())) {
              become_classifier(all, static_cast<int32_t>(labels->names.size()));
              all.shifts_last_to_start = model_type == "mbart";
            }
            return std::make_unique<EncoderDecoder>(all);
          },
      .place = [tied](std::string_view parameter) { return bart_place(parameter, tied); },
      .no_weight =
          [tied](const std::string& tensor, const TensorFiles& files, const Model&,
                 Differences& differences) { return is_no_weight_of_bart(tensor, files, tied, differences); },
      .other_heads = {kTextLabelLayers, "qa_outputs."},
      .fields_of_heads =
          [](const HeadGeometry& heads, int32_t d_model) {
            auto both = heads_that_divide(heads, d_model, "encoder_attention_heads");
            both.merge(heads_that_divide(heads, d_model, "decoder_attention_heads"));
            return both;
          },
      .field_of_longest = std::string(kTranslatorFields.max_positions),
      .labels = labels};
}

FolderPlan read_bart(std::string_view json, std::string_view name) {
  return read_bart_kind("bart", BartFields(), json, name);
}
FolderPlan read_mbart(std::string_view json, std::string_view name) {
  return read_bart_kind("mbart", mbart_fields(), json, name);
}
FolderPlan read_m2m_100(std::string_view json, std::string_view name) {
  return read_bart_kind("m2m_100", m2m_100_fields(), json, name);
}

KnownKeys keys_of_kind(const BartFields& fields) {
  constexpr std::string_view kNoSuch = "expected what the class of transformers computes";
  const TranslatorShape& shape = fields.shape;
  const auto only = [](bool value) -> std::string_view { return value ? "[true]" : "[false]"; };
  const std::string_view norms_before = only(shape.norm == NormPlacement::kPre);
  KnownKeys keys{.obeyed = keys_of(fields),
                 .rules = {std::begin(kTranslatorRules), std::end(kTranslatorRules)}};
  keys.rules.insert(
      keys.rules.end(),
      {// Of versions before 4, whose classes had these choices.
       {.key = "normalize_before", .harmless = norms_before, .refused = kNoSuch},
       {.key = "add_final_layer_norm", .harmless = norms_before, .refused = kNoSuch},
       {.key = "normalize_embedding", .harmless = only(shape.norm_embeddings), .refused = kNoSuch},
       {.key = "static_position_embeddings",
        .harmless = only(shape.positions == Positions::kSinusoidal),
        .refused = kNoSuch},
       {.key = "extra_pos_embeddings", .harmless = "[2]", .refused = kNoSuch},
       {.key = "add_bias_logits"},
       {.key = "force_bos_token_to_be_generated"},  // forced_first() of generation_config.cpp
       {.key = "decoder_vocab_size", .refused = "expected one vocabulary for both sides"}});
  return keys;
}
KnownKeys bart_keys() {
  return keys_of_kind(BartFields());
}
KnownKeys mbart_keys() {
  return keys_of_kind(mbart_fields());
}
KnownKeys m2m_100_keys() {
  return keys_of_kind(m2m_100_fields());
}

constexpr OracleAttention kMbartAttentions[] = {{.module = "self_attn",
                                                 .queries = "self_attn.q_proj",
                                                 .keys = "self_attn.k_proj",
                                                 .output = "self_attn.out_proj"},
                                                {.site = "cross_attention",
                                                 .module = "encoder_attn",
                                                 .queries = "encoder_attn.q_proj",
                                                 .keys = "encoder_attn.k_proj",
                                                 .output = "encoder_attn.out_proj"}};
constexpr OracleStack kMbartStacks[] = {{.name = "encoder",
                                         .layers = "encoder.layers",
                                         .states = "encoder.layer_norm",
                                         .attentions = std::span(kMbartAttentions).first(1),
                                         .second_linear = "fc2"},
                                        {.name = "decoder",
                                         .layers = "decoder.layers",
                                         .states = "decoder.layer_norm",
                                         .attentions = kMbartAttentions,
                                         .second_linear = "fc2"}};
constexpr OracleModules kMbartOracle = {.stacks = kMbartStacks};

}  // namespace

extern const Family kBartFamily;
const Family kBartFamily = {"bart",
                            "an encoder-decoder of BartForConditionalGeneration",
                            read_bart,
                            bart_keys,
                            kTranslatorAliases,
                            &kSummedOracle,
                            nullptr,
                            FamilyTexts::kSourceAndTarget};
extern const Family kMbartFamily;
const Family kMbartFamily = {"mbart",
                             "an encoder-decoder of MBartForConditionalGeneration",
                             read_mbart,
                             mbart_keys,
                             kTranslatorAliases,
                             &kMbartOracle,
                             nullptr,
                             FamilyTexts::kManyLanguages};
extern const Family kM2m100Family;
const Family kM2m100Family = {"m2m_100",
                              "an encoder-decoder of M2M100ForConditionalGeneration",
                              read_m2m_100,
                              m2m_100_keys,
                              kTranslatorAliases,
                              &kMbartOracle,
                              nullptr,
                              FamilyTexts::kManyLanguages};

}  // namespace mh
