#include "multihead/folders/families/decoder_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/models/encoder_model.h"

namespace mh {
namespace {

TensorPlace place_of(const DecoderNames& names, std::string_view parameter) {
  if (parameter == "output") return {.names = {std::string(names.output)}};
  if (parameter == "output_bias") return {.names = {std::string(names.output_bias)}, .layout = kOneRow};
  TensorPlace place = place_in(names.own, parameter);
  if (place.names.size() > 1) place = place_in(names.tensors, parameter);  // it is not in the first table
  place.names.insert(place.names.begin(), std::string(names.base) + place.names.front());
  if (place.parts == 3) place.block = names.block;
  return place;
}

/// The model alone, or with a layer that sorts texts into classes: no output that predicts a token.
bool is_without_output(const DecoderNames& names, const TensorFiles& files) {
  if (files.contains(names.output)) return false;
  const auto& tensors = files.tensors();
  return files.contains(place_of(names, "embedding").names.back()) ||
         std::any_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
           return std::any_of(names.other_heads.begin(), names.other_heads.end(),
                              [&](const std::string& begin) { return tensor.first.starts_with(begin); });
         });
}

/// The same layers where tokens see both sides.
EncoderConfig encoder_config(const CausalConfig& config) {
  EncoderConfig encoder{.embedding = config.embedding,
                        .positions = config.positions,
                        .max_positions = config.max_positions,
                        .position_offset = config.position_offset,
                        .stack = config.stack,
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

/// Of an encoder: an output layer is not read.
void become_encoder(FolderPlan& plan, const DecoderNames& names, const CausalConfig& config) {
  plan.make = [encoder = encoder_config(config)](const TensorFiles&) {
    return std::make_unique<EncoderModel>(encoder);
  };
  plan.place = [names](std::string_view parameter) { return place_of(names, as_of_decoder(parameter)); };
  plan.other_heads.emplace_back(names.output);
  plan.other_heads.emplace_back(names.output_bias);
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
                        std::string_view name, FieldsOfHeads fields_of_heads) {
  CausalConfig& config = draft.config;
  if (draft.wrong.empty()) draft.wrong = problems_of(draft, fields);
  if (!draft.wrong.empty()) throw FormatError(fmt::format("{}: {}", name, fmt::join(draft.wrong, "; ")));
  FolderPlan plan{
      .model_type = std::string(names.model_type),
      .least_parameters = least_parameters(config),
      .make =
          [names, config](const TensorFiles& files) {
            CausalConfig all = config;
            all.predicts = config.tied || !is_without_output(names, files);
            const TensorPlace embedding = place_of(names, "embedding");
            if (has_own_output(files, names.output, {embedding.names.front(), embedding.names.back()}))
              all.tied = false;
            return std::make_unique<CausalModel>(all);
          },
      .place = [names](std::string_view parameter) { return place_of(names, parameter); },
      .no_weight =
          [names, tied = config.tied](const std::string& tensor, const TensorFiles&, const Model&,
                                      Differences&) {
            return (tied && tensor == names.output) ||
                   std::any_of(names.no_weights.begin(), names.no_weights.end(),
                               [&](std::string_view end) { return tensor.ends_with(end); });
          },
      .other_heads = names.other_heads,
      .fields_of_heads = std::move(fields_of_heads),
      .remarks = std::move(draft.remarks)};
  if (draft.sees_all) become_encoder(plan, names, config);
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
