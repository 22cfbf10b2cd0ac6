#include "multihead/folders/families/decoder_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/labels.h"
#include "multihead/io/config.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/label_head.h"

namespace mh {
namespace {

/// layer: the module that gives labels.
TensorPlace place_of(const DecoderNames& names, std::string_view layer, std::string_view parameter) {
  if (parameter == "labels.w") return {.names = {fmt::format("{}.weight", layer)}, .layout = kOutIn};
  if (parameter == "labels.b") return {.names = {fmt::format("{}.bias", layer)}, .layout = kOneRow};
  if (parameter == "output") return {.names = {std::string(names.output)}};
  if (parameter == "output_bias") return {.names = {std::string(names.output_bias)}, .layout = kOneRow};
  TensorPlace place = place_in(names.own, parameter);
  if (place.names.size() > 1) place = place_in(names.tensors, parameter);  // it is not in the first table
  place.names.insert(place.names.begin(), std::string(names.base) + place.names.front());
  if (place.parts == 3) place.block = names.block;
  return place;
}

/// How the names of tensors begin that make labels.
std::vector<std::string> label_tensors(const DecoderNames& names) {
  return {fmt::format("{}.", names.text_labels), fmt::format("{}.", names.token_labels)};
}

/// The model alone, or with a layer of labels: no output that predicts a token.
bool is_without_output(const DecoderNames& names, const TensorFiles& files) {
  if (files.contains(names.output)) return false;
  const auto& tensors = files.tensors();
  const std::vector<std::string> labels = label_tensors(names);
  return files.contains(place_of(names, {}, "embedding").names.back()) ||
         std::any_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
           return std::any_of(labels.begin(), labels.end(),
                              [&](const std::string& begin) { return tensor.first.starts_with(begin); });
         });
}

/// Of ...ForTokenClassification alone, which asks for it and writes it nowhere.
struct TokenLabelFields {
  bool bias = true;

  template <class V>
  void visit(V& v) {
    v("token_classification_bias", bias);
  }
};

/// The layer of these labels as transformers has it.
LabelConfig label_config(const Labels& labels, std::string_view json, std::string_view name) {
  LabelConfig config{
      .labels = static_cast<int32_t>(labels.names.size()), .rows = LabelRows::kLast, .bias = false};
  if (labels.of == LabelsOf::kTokens) {
    TokenLabelFields fields;
    from_json(fields, json, name, UnknownKeys::kIgnore);
    config.rows = LabelRows::kTokens;
    config.bias = fields.bias;
  }
  return config;
}

/// The same layers where tokens see both sides.
EncoderConfig encoder_config(const CausalConfig& config) {
  EncoderConfig encoder{.embedding = config.embedding,
                        .positions = config.positions,
                        .max_positions = config.max_positions,
                        .position_offset = config.position_offset,
                        .stack = config.stack,
                        .labels = config.labels,
                        .pad_id = config.pad_id};
  encoder.stack.name = "encoder";
  return encoder;
}

/// The tables have the names of decoders.
std::string as_of_decoder(std::string_view parameter) {
  constexpr std::string_view kEncoder = "encoder.";
  if (!parameter.starts_with(kEncoder)) return std::string(parameter);
  return fmt::format("decoder.{}", parameter.substr(kEncoder.size()));
}

/// A decoder; a classifier where there are labels and the files have their layer.
std::unique_ptr<Model> make_decoder(const DecoderNames& names, const CausalConfig& config, bool labelled,
                                    const TensorFiles& files) {
  CausalConfig all = config;
  all.predicts = !labelled && (config.tied || !is_without_output(names, files));
  if (!labelled) all.labels.reset();
  const TensorPlace embedding = place_of(names, {}, "embedding");
  if (has_own_output(files, names.output, {embedding.names.front(), embedding.names.back()}))
    all.tied = false;
  return std::make_unique<CausalModel>(all);
}

std::unique_ptr<Model> make_encoder(const CausalConfig& config, bool labelled) {
  EncoderConfig all = encoder_config(config);
  if (!labelled) all.labels.reset();
  return std::make_unique<EncoderModel>(all);
}

}  // namespace

void see_all(DecoderDraft& draft, int32_t fewer) {
  draft.sees_all = true;
  const auto opened = [&](const StackMask& mask) {
    return mask.has_window() ? StackMask::local(mask.window - fewer) : StackMask::none();
  };
  StackConfig& stack = draft.config.stack;
  stack.mask = opened(stack.mask);
  for (LayerConfig& layer : stack.layers) {
    if (layer.mask) layer.mask = opened(*layer.mask);
  }
}

std::vector<std::string> problems_of(const DecoderDraft& draft, const ConfigNames& names) {
  return draft.sees_all ? problems_of(encoder_config(draft.config), names) : problems_of(draft.config, names);
}

void turn(CausalConfig& config, const RopePositions& rope) {
  config.positions = config.stack.positions = Positions::kRotary;
  config.max_positions = rope.longest;
  config.stack.rotary = rope.rotary;
}

FolderPlan decoder_plan(const DecoderNames& names, DecoderDraft draft, const ConfigNames& fields,
                        std::string_view json, std::string_view name, FieldsOfHeads fields_of_heads) {
  CausalConfig& config = draft.config;
  if (draft.wrong.empty()) draft.wrong = problems_of(draft, fields);
  if (!draft.wrong.empty()) throw FormatError(fmt::format("{}: {}", name, fmt::join(draft.wrong, "; ")));
  const std::optional<Labels> labels = read_labels(json, name);
  if (labels) config.labels = label_config(*labels, json, name);
  const bool of_tokens = labels && labels->of == LabelsOf::kTokens;
  const std::string_view layer = of_tokens ? names.token_labels : names.text_labels;
  FolderPlan plan{
      .model_type = std::string(names.model_type),
      .least_parameters = least_parameters(config),
      .make = [names, config, layer,
               sees_all = draft.sees_all](const TensorFiles& files) -> std::unique_ptr<Model> {
        const bool labelled =
            config.labels && files.contains(place_of(names, layer, "labels.w").names.front());
        return sees_all ? make_encoder(config, labelled) : make_decoder(names, config, labelled, files);
      },
      .place = [names, layer](
                   std::string_view parameter) { return place_of(names, layer, as_of_decoder(parameter)); },
      .no_weight =
          [names, tied = config.tied](const std::string& tensor, const TensorFiles&, const Model&,
                                      Differences&) {
            return (tied && tensor == names.output) ||
                   std::any_of(names.no_weights.begin(), names.no_weights.end(),
                               [&](std::string_view end) { return tensor.ends_with(end); });
          },
      .other_heads = label_tensors(names),
      .fields_of_heads = std::move(fields_of_heads),
      .labels = labels,
      .remarks = std::move(draft.remarks)};
  if (draft.sees_all || labels) {  // an output layer is not read
    plan.other_heads.emplace_back(names.output);
    plan.other_heads.emplace_back(names.output_bias);
  }
  return plan;
}

FieldsOfHeads divided_heads(const char* field) {
  return [field](const HeadGeometry& heads, int32_t d_model) {
    return heads_that_divide(heads, d_model, field);
  };
}

std::map<std::string, int32_t> grouped_heads(const HeadGeometry& heads, int32_t) {
  if (heads.key_heads != heads.value_heads || heads.d_key != heads.d_value)
    throw UsageError("it gives keys and values the same heads");
  return {{"num_attention_heads", heads.heads},
          {"num_key_value_heads", heads.key_heads},
          {"head_dim", heads.d_key}};
}

}  // namespace mh
