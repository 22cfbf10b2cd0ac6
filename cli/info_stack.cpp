#include "cli/info_stack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/info_parts.h"
#include "multihead/base/terminal_text.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/config_checks.h"
#include "multihead/text/in_quotes.h"

namespace mh::cli {

using nlohmann::ordered_json;

namespace {

ordered_json names_of(const std::vector<Pooling>& poolings) {
  ordered_json names = ordered_json::array();
  for (const Pooling pooling : poolings) names.push_back(name_of(pooling, kPoolingNames));
  return names;
}

bool is_encoder(const StackConfig& stack) {
  return all_look(AttentionDirection::kBidirectional, stack);
}

/// How many tokens self-attention of each layer sees, or to each side in an encoder; 0: all.
std::vector<int32_t> windows_of(const StackConfig& stack) {
  std::vector<int32_t> windows;
  for (size_t i = 0; i < stack.layers.size(); ++i) windows.push_back(stack.mask_of(i).window);
  return windows;
}

/// "3 of 5 layers see 64 tokens to each side"; empty when all see everything.
std::string windows_text(const StackConfig& stack) {
  const std::vector<int32_t> windows = windows_of(stack);
  const auto with = std::ssize(windows) - std::count(windows.begin(), windows.end(), 0);
  if (with == 0) return "";
  const int32_t window = *std::max_element(windows.begin(), windows.end());
  return fmt::format("{} of {} {} ", with, counted(std::ssize(windows), "layer"),
                     with == 1 ? "sees" : "see") +
         (is_encoder(stack) ? fmt::format("{} tokens to each side", window)
                            : fmt::format("the last {} tokens", window));
}

/// How the queries and keys of each layer turn; null: they do not.
std::vector<const RotaryOptions*> rotary_of(const StackConfig& stack) {
  std::vector<const RotaryOptions*> found;
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const RotaryOptions& rotary = stack.layers[i].rotary ? *stack.layers[i].rotary : stack.rotary;
    found.push_back(stack.positions_of(i) == Positions::kRotary ? &rotary : nullptr);
  }
  return found;
}

/// Whether there is more to say than that all numbers turn in all layers, without scaling.
bool turns_otherwise(const StackConfig& stack) {
  const auto layers = rotary_of(stack);
  const auto is_plain = [&](const RotaryOptions* rotary) {
    return rotary != nullptr && rotary->rotated == 0 && rotary->scaling.kind == RotaryScaling::Kind::kNone &&
           rotary->base == layers.front()->base;
  };
  return stack.positions == Positions::kRotary && !std::all_of(layers.begin(), layers.end(), is_plain);
}

/// "base 700, linear with factor 2".
std::string rotary_text(const RotaryOptions* rotary) {
  if (rotary == nullptr) return "no positions";
  std::string text = fmt::format("base {}", rotary->base);
  if (rotary->rotated > 0) text += fmt::format(", the first {} numbers of a head turn", rotary->rotated);
  const RotaryScaling& scaling = rotary->scaling;
  if (scaling.kind != RotaryScaling::Kind::kNone)
    text += fmt::format(", {}", name_of(scaling.kind, kRotaryScalingNames));
  if (scaling.factor != 1) text += fmt::format(" with factor {:.6g}", scaling.factor);
  if (scaling.amplitude != 1) text += fmt::format(", attention factor {:.6g}", scaling.amplitude);
  return text;
}

/// "1 layer: base 700, linear with factor 2; 2 layers: base 30".
std::string rotary_text(const StackConfig& stack) {
  std::vector<std::pair<std::string, ptrdiff_t>> kinds;  // and how many layers
  for (const RotaryOptions* rotary : rotary_of(stack)) {
    const std::string text = rotary_text(rotary);
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& of) { return of.first == text; });
    if (kind == kinds.end()) kind = kinds.emplace(kind, text, 0);
    ++kind->second;
  }
  if (kinds.size() == 1) return kinds.front().first;
  std::vector<std::string> parts;
  for (const auto& kind : kinds)
    parts.push_back(fmt::format("{}: {}", counted(kind.second, "layer"), kind.first));
  return fmt::format("{}", fmt::join(parts, "; "));
}

ordered_json rotary_json(const StackConfig& stack) {
  ordered_json layers = ordered_json::array();
  for (const RotaryOptions* rotary : rotary_of(stack)) {
    layers.push_back(rotary == nullptr
                         ? ordered_json()
                         : ordered_json{{"base", rotary->base},
                                        {"rotated", rotary->rotated},
                                        {"scaling", name_of(rotary->scaling.kind, kRotaryScalingNames)},
                                        {"factor", rotary->scaling.factor},
                                        {"attention_factor", rotary->scaling.amplitude}});
  }
  return layers;
}

/// The soft cap of logits of the next token.
std::optional<float> logit_cap_of(const Model& model) {
  if (model.kind() != ModelKind::kCausal || !model.predicts()) return std::nullopt;
  return dynamic_cast<const CausalModel&>(model).config().logit_soft_cap;
}

std::string sentences_text(const SentenceModel& model) {
  std::vector<std::string> steps;
  for (const Pooling pooling : model.poolings)
    steps.push_back(fmt::format("{} of the states{}", name_of(pooling, kPoolingNames),
                                model.pools_prompt ? "" : " behind the prompt"));
  for (const auto& dense : model.steps) steps.emplace_back(dense ? "a dense layer" : "divided by its length");
  if (model.truncate_dim) steps.push_back(fmt::format("the first {} numbers", *model.truncate_dim));
  return fmt::format("vectors of {} numbers from up to {} tokens: {}", model.dimension, model.longest,
                     fmt::join(steps, ", "));
}

/// "query 'search: ', document 'text: '"; empty: there is none that has a text.
std::string prompts_text(const SentenceModel* model) {
  std::vector<std::string> prompts;
  if (model == nullptr) return "";
  for (const SentencePrompt& prompt : model->prompts) {
    if (!prompt.text.empty())
      prompts.push_back(fmt::format("{} {}", printable_line(prompt.name), in_quotes(prompt.text)));
  }
  return fmt::format("{}", fmt::join(prompts, ", "));
}

/// "pre-norm", in the line of the model.
std::string norms_text(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::kPost:
      break;
    case NormPlacement::kPre:
      return "pre-norm";
    case NormPlacement::kOutput:
      return "output-norm";
    case NormPlacement::kPreAndOutput:
      return "pre- and output-norm";
  }
  return "post-norm";
}

}  // namespace

std::string labels_text(const Labels& labels) {
  constexpr size_t kShown = 6;
  std::vector<std::string> shown;
  for (const std::string& name : labels.names) {
    if (shown.size() < kShown) shown.push_back(printable_line(name));
  }
  if (labels.names.size() > kShown) shown.push_back(fmt::format("and {} more", labels.names.size() - kShown));
  return fmt::format("{} of {} by {}: {}", labels.names.size(), name_of(labels.of, kLabelsOfNames),
                     name_of(labels.scores, kLabelScoresNames), fmt::join(shown, ", "));
}

ordered_json label_names_json(const Labels& labels) {
  return {{"of", name_of(labels.of, kLabelsOfNames)},
          {"scores", name_of(labels.scores, kLabelScoresNames)},
          {"names", labels.names}};
}

std::optional<OneStack> one_stack(const Model& model) {
  if (model.stack_configs().size() > 1) return std::nullopt;
  std::vector<std::string> heads;
  if (model.pools()) heads.emplace_back("pooler");
  if (model.predicts())
    heads.emplace_back(model.kind() == ModelKind::kEncoder ? "masked words" : "next token");
  if (model.label_head() != nullptr) heads.emplace_back("labels");
  const ModelFacts facts = model.facts();
  return OneStack{*model.stack_configs().front(), model.embedding_config(), facts.positions,
                  facts.max_positions, heads};
}

ordered_json describe_stack(const ModelFolder& folder, const OneStack& one, const SentenceModel* sentences) {
  const LayerConfig& layer = one.first();
  ordered_json json;
  json["folder"] = folder.path.string();
  json["model_type"] = folder.model_type;
  json["norm"] = name_of(one.stack.norm.placement, kNormPlacementNames);
  if (one.stack.order != SublayerOrder::kOneAfterAnother)
    json["sublayers"] = name_of(one.stack.order, kSublayerOrderNames);
  json["parameters"] = folder.model->parameter_count();
  json["d_model"] = one.stack.d_model;
  if (one.embedding.d_model != one.stack.d_model) json["d_embedding"] = one.embedding.d_model;
  json[one.stack.name] = {{"layers", one.stack.layers.size()},
                          {"heads", heads_of_each(one.stack)},
                          {"d_ff", layer.feed_forward.d_ff}};
  json["predicts"] = one.heads;
  if (folder.labels) json["labels"] = label_names_json(*folder.labels);
  json["head_geometry"] = unusual_heads(layer.self_attention);
  json["activation"] = name_of(layer.feed_forward.activation, kActivationNames);
  json["positions"] = name_of(one.all_positions(), kPositionNames);
  json["max_positions"] = one.max_positions;
  if (turns_otherwise(one.stack)) json["rotary"] = rotary_json(one.stack);
  if (!windows_text(one.stack).empty()) json["windows"] = windows_of(one.stack);
  if (const auto cap = logit_cap_of(*folder.model)) json["logit_soft_cap"] = rounded(*cap);
  json["vocabulary"] = {{"source", one.embedding.vocabulary}, {"token_types", one.embedding.token_types}};
  json["dropout"] = {{"residual", rounded(one.stack.dropout.residual)},
                     {"weights", rounded(one.stack.dropout.weights)}};
  json["tokenizer"] = folder.tokenizer ? ordered_json{{"tokens", folder.tokenizer->size()}} : ordered_json();
  if (sentences != nullptr) {
    ordered_json prompts = ordered_json::object();
    for (const SentencePrompt& prompt : sentences->prompts) prompts[prompt.name] = prompt.text;
    json["sentences"] = {{"pooling", names_of(sentences->poolings)},
                         {"dimension", sentences->dimension},
                         {"longest", sentences->longest},
                         {"similarity", name_of(sentences->similarity, kSimilarityNames)},
                         {"prompts", prompts}};
  }
  describe_parts(folder, json);
  return json;
}

std::string stack_table(const ModelFolder& folder, const OneStack& one, const SentenceModel* sentences) {
  const LayerConfig& layer = one.first();
  std::string text;
  const auto line = [&](std::string_view what, const std::string& value) { text += info_row(what, value); };
  line("model", fmt::format("{}, {} {}", folder.model_type, norms_text(one.stack.norm.placement),
                            is_encoder(one.stack) ? "encoder" : "causal decoder"));
  if (one.stack.order != SublayerOrder::kOneAfterAnother)
    line("sublayers", one.stack.order == SublayerOrder::kParallel
                          ? "attention and feed-forward layer read the same row"
                          : "attention and feed-forward layer read the same row through one norm");
  line("parameters", grouped(folder.model->parameter_count()));
  const bool projects = one.embedding.d_model != one.stack.d_model;
  line("d_model", fmt::format("{}{}", one.stack.d_model,
                              projects ? fmt::format("; embeddings of {}", one.embedding.d_model) : ""));
  line(one.stack.name, layers_text(one.stack));
  if (const ordered_json fields = unusual_heads(layer.self_attention); !fields.empty())
    line("heads", fields.dump());
  if (folder.labels) line("labels", labels_text(*folder.labels));
  line("activation", name_of(layer.feed_forward.activation, kActivationNames));
  line("positions", positions_text(one.all_positions(), one.max_positions));
  if (turns_otherwise(one.stack)) line("rotary", rotary_text(one.stack));
  if (const std::string windows = windows_text(one.stack); !windows.empty()) line("windows", windows);
  if (const auto cap = logit_cap_of(*folder.model)) line("logits", fmt::format("softly capped at {}", *cap));
  line("vocabulary", fmt::format("{}{}", one.embedding.vocabulary,
                                 one.embedding.token_types > 0
                                     ? fmt::format("; {}", counted(one.embedding.token_types, "type of token",
                                                                   "types of token"))
                                     : ""));
  line("tokenizer", folder.tokenizer ? counted(folder.tokenizer->size(), "token") : "none");
  if (!one.heads.empty()) line("on top", fmt::format("{}", fmt::join(one.heads, ", ")));
  if (sentences != nullptr) {
    line("sentences", sentences_text(*sentences));
    line("similarity", formula_of(sentences->similarity));
  }
  if (const std::string prompts = prompts_text(sentences); !prompts.empty()) line("prompts", prompts);
  return text + parts_table(folder);
}

}  // namespace mh::cli
