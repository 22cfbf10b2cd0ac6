#include "multihead/train/translator/translator_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/checkpoint_names.h"
#include "multihead/io/check_option.h"
#include "multihead/io/setting_visitor.h"
#include "multihead/models/transformer_presets.h"
#include "multihead/models/translator_shape.h"
#include "multihead/train/translator/translator_heads.h"

namespace mh {
namespace {

// How each size is usually trained. tiny: fairseq's recipe for transformer_tiny on Multi30k; base and big:
// the paper.
struct Habits {
  std::string_view preset;
  float dropout;
  int32_t batch_tokens;
  double learning_rate;
  int64_t warmup;
};
constexpr std::array<Habits, 4> kHabits = {{
    {"tiny", 0.3f, 5600, 5e-3, 2000},
    {"small", 0.2f, 4096, 1e-3, 4000},
    {"base", 0.1f, 8192, 7e-4, 4000},
    {"big", 0.3f, 8192, 5e-4, 4000},
}};

template <class T, class U>
void fill(std::optional<T>& field, const U& value) {
  if (!field) field = static_cast<T>(value);
}

// Writes each setting as text.
class SettingTexts : public SettingVisitor<SettingTexts> {
 public:
  template <class T, class R>
  void setting(std::string_view name, const T& value, const R& rule, const About&) {
    if constexpr (detail::IsOptionalEnum<T>::value) {
      settings.push_back({std::string(name), std::string()});
      for (const auto& [text, meaning] : rule) {
        if (value == meaning) settings.back().value = text;
      }
    } else if constexpr (detail::IsOptional<T>::value) {
      settings.push_back({std::string(name), value ? fmt::format("{}", *value) : std::string()});
    } else if constexpr (kHasNames<T>) {
      for (const auto& [text, meaning] : rule) {
        if (meaning == value) settings.push_back({std::string(name), text});
      }
    } else {
      settings.push_back({std::string(name), fmt::format("{}", value)});
    }
  }
  std::vector<Setting> settings;
};

// Throws UsageError on the first number out of its range; flags and files have none, a program may.
class CheckRanges : public SettingVisitor<CheckRanges> {
 public:
  template <class T, class R>
  void setting(std::string_view name, const T& value, const R& rule, const About&) {
    if constexpr (detail::IsOptional<T>::value && !detail::IsOptionalEnum<T>::value) {
      if (value) setting(name, *value, rule, {});
    } else if constexpr (detail::kIsNumber<T>) {
      check_option(name, value, rule);
    }
  }
};

constexpr std::array<std::string_view, 16> kMayChange = {
    "train_source", "train_target", "valid_source",    "valid_target", "model",    "tokenizer",
    "epochs",       "keep",         "log_every",       "average",      "patience", "max_line_characters",
    "max_unpacked", "share_corpus", "shard_optimiser", "rank_timeout"};

// Somebody who gives no text may think that a training could go on.
std::string why_nothing_goes_on(const TranslatorSettings& settings) {
  if (!settings.train_source.empty() || !settings.train_target.empty()) return "";
  return checkpoint_updates(settings.model).empty()
             ? fmt::format(" ({} holds no training that could go on)", settings.model)
             : fmt::format(" ({} does not keep the settings of its training: give all of them again)",
                           settings.model);
}

}  // namespace

TranslatorSettings resolved(TranslatorSettings settings) {
  const TranslatorShape preset = transformer_preset(settings.preset);
  const TransformerPreset about = about_transformer_preset(settings.preset);
  const auto* habits =
      std::find_if(kHabits.begin(), kHabits.end(), [&](const Habits& h) { return h.preset == about.family; });
  MH_ASSERT(habits != kHabits.end());
  fill(settings.d_model, preset.d_model);
  fill(settings.d_ff, preset.encoder_ff);
  fill(settings.encoder_layers, preset.encoder_layers);
  fill(settings.decoder_layers, preset.decoder_layers);
  fill(settings.heads, preset.encoder_heads);
  fill(settings.positions, preset.positions);
  // A row about dropout says which; a family's own is how it is usually trained.
  fill(settings.dropout,
       about.name == about.family ? habits->dropout : about.dropout.value_or(habits->dropout));
  fill(settings.label_smoothing, about.label_smoothing.value_or(0.1f));
  fill(settings.batch_tokens, habits->batch_tokens);
  fill(settings.learning_rate, habits->learning_rate);
  fill(settings.warmup, habits->warmup);

  // Without translations the loss has to decide; without validation the last checkpoint is the best one
  // known.
  if (settings.validate_beam == 0) settings.metric = Metric::kLoss;
  if (settings.valid_source.empty()) settings.average_of = AverageOf::kLast;
  if (settings.save_every == 0) settings.save_every = settings.validate_every;
  return settings;
}

void check_settings(const TranslatorSettings& settings) {
  CheckRanges ranges;
  const_cast<TranslatorSettings&>(settings).visit(ranges);  // visit() serves reading too, so it is not const
  if (settings.model.empty()) throw UsageError("`model` is needed: the folder to make");
  if (settings.train_source.empty() || settings.train_target.empty()) {
    throw UsageError(
        fmt::format("`train_source` and `train_target` are needed: two text files, a sentence a line{}",
                    why_nothing_goes_on(settings)));
  }
  if (settings.valid_source.empty() != settings.valid_target.empty()) {
    throw UsageError("`valid_source` and `valid_target` belong together: give both or neither");
  }
  if (settings.init_from.empty()) {
    if (const std::string_view given = settings.pair_texts.given(); !given.empty()) {
      throw UsageError(
          fmt::format("`{}` is for a model that was trained already: give its folder as `init_from`", given));
    }
    check_heads(resolved(settings));
  }
  if (settings.updates == 0 && settings.epochs == 0 &&
      (settings.patience == 0 || settings.valid_source.empty())) {
    throw UsageError(
        "the training has no end: give `updates`, `epochs`, or `patience` with a validation text");
  }
  if (settings.schedule == Schedule::Decay::kLinear && settings.updates == 0) {
    throw UsageError("`schedule` linear falls to 0 at the last update: say which with `updates`");
  }
  if (settings.patience > 0 && settings.valid_source.empty()) {
    throw UsageError("`patience` needs `valid_source` and `valid_target`");
  }
  for (const auto& [giver, given] :
       {std::pair("tokenizer", !settings.tokenizer.empty()), {"init_from", !settings.init_from.empty()}}) {
    if (given && settings.word_level) {
      throw UsageError(fmt::format(
          "`word_level` says how a tokenizer is learned, but `{}` gives one: leave one of them out", giver));
    }
    if (given && settings.separate_vocabularies) {
      throw UsageError(fmt::format(
          "`separate_vocabularies` learns two tokenizers, but `{}` gives one: leave one of them out", giver));
    }
  }
}

TranslatorShape model_shape(const TranslatorSettings& settings, int32_t vocabulary_size,
                            int32_t target_vocabulary_size) {
  TranslatorShape shape = transformer_preset(settings.preset);
  shape.vocabulary_size = vocabulary_size;
  shape.target_vocabulary_size = target_vocabulary_size;
  shape.share_embeddings = target_vocabulary_size == 0;
  shape.d_model = *settings.d_model;
  shape.encoder_ff = shape.decoder_ff = *settings.d_ff;
  shape.encoder_layers = *settings.encoder_layers;
  shape.decoder_layers = *settings.decoder_layers;
  shape.encoder_heads = shape.decoder_heads = *settings.heads;
  shape.geometry = head_geometry(settings, shape);
  shape.positions = *settings.positions;
  shape.norm = settings.norm;
  shape.activation = settings.activation;
  shape.dropout.residual = *settings.dropout;
  shape.dropout.weights = settings.attention_dropout;
  shape.dropout.activation = settings.activation_dropout;
  shape.max_positions = std::max(shape.max_positions, settings.max_length);
  return shape;
}

std::vector<Setting> fixed_settings(const TranslatorSettings& settings) {
  SettingTexts texts;
  const_cast<TranslatorSettings&>(settings).visit(texts);  // visit() serves reading too, so it is not const
  const bool length_matters = settings.schedule == Schedule::Decay::kLinear;
  std::erase_if(texts.settings, [&](const Setting& setting) {
    if (setting.name == "updates") return !length_matters;
    return std::find(kMayChange.begin(), kMayChange.end(), setting.name) != kMayChange.end();
  });
  return texts.settings;
}

}  // namespace mh
