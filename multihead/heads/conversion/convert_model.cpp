#include "multihead/heads/conversion/convert_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/geometries/head_scheme.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

bool of_encoder(const std::string& attention) {
  return attention.starts_with("encoder.");
}

/// With what stands for itself left unset again, so that attentions can share one description.
HeadGeometry shortest(HeadGeometry g, int d_model) {
  const HeadGeometry whole = completed(g, d_model, "");
  const auto leave_out = [&](const auto& field, auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, int> || std::is_same_v<Value, std::optional<float>>) {
      const Value kept = std::exchange(value, Value{});
      if (!problems_of(g, d_model).empty() || completed(g, d_model, "") != whole) value = kept;
    }
    static_cast<void>(field);
  };
  // The scale follows from sizes, values' sizes from keys': what depends on others is left out first.
  const auto in_turn = [&](const std::set<std::string_view>& names) {
    HeadGeometry::describe(g, [&](const HeadField& field, auto& value, const auto&...) {
      if (names.contains(field.name)) leave_out(field, value);
    });
  };
  for (const char* name : {"scale", "value_heads", "key_heads", "d_value", "d_key"}) in_turn({name});
  HeadGeometry::describe(g, [&](const HeadField& field, auto& value, const auto&...) {
    if (field.only) leave_out(field, value);
  });
  return g;
}

/// Whether each head has queries and keys of its own, which positions may turn.
bool turns_alone(const HeadGeometry& g, int d_model) {
  const HeadScheme& scheme = scheme_of(g);
  return scheme.projects_keys() && scheme.shape(g, d_model).d_key == g.d_key;
}

void check_positions(const EncoderDecoderConfig& config, const HeadGeometry& before,
                     const HeadGeometry& after) {
  if (config.positions == Positions::kRotary &&
      !(turns_alone(before, config.d_model) && turns_alone(after, config.d_model)))
    throw UsageError(
        "rotary positions turn each head's queries and keys before their product, so that these cannot "
        "become one matrix or shared ones");
  if (config.positions == Positions::kAlibi && before.heads != after.heads)
    throw UsageError("ALiBi positions give each head a slope by its number, so that heads cannot be removed");
}

/// Whether an attention that shares this description has these heads.
bool describes(HeadGeometry shared, const HeadGeometry& heads, int d_model) {
  shared.heads = heads.heads;
  return problems_of(shared, d_model).empty() && completed(shared, d_model, "") == heads;
}

using Converted = std::map<std::string, LayerWeights>;

/// The shape of a model with these attentions: one description for as many as possible, and the others' own.
EncoderDecoderConfig config_for(const EncoderDecoderConfig& before, const Converted& converted) {
  const int d_model = before.d_model;
  const HeadGeometry &encoder = converted.at("encoder.0.self_attention").geometry,
                     &decoder = converted.at("decoder.0.self_attention").geometry;
  EncoderDecoderConfig after = before;
  after.encoder_heads = encoder.heads;
  after.decoder_heads = decoder.heads;
  after.own_heads.clear();
  int64_t most = -1;
  for (const HeadGeometry& candidate : {shortest(encoder, d_model), shortest(decoder, d_model)}) {
    const int64_t described = std::count_if(converted.begin(), converted.end(), [&](const auto& layer) {
      return layer.second.geometry.heads == (of_encoder(layer.first) ? encoder : decoder).heads &&
             describes(candidate, layer.second.geometry, d_model);
    });
    if (described <= most) continue;
    most = described;
    after.geometry = candidate;
    after.geometry.heads = HeadGeometry().heads;  // the sides have their own
  }
  for (const auto& [name, layer] : converted) {
    const HeadGeometry shared = after.heads_of(name);
    if (problems_of(shared, d_model).empty() && completed(shared, d_model, name) == layer.geometry) continue;
    after.own_heads.push_back({.attention = name, .geometry = shortest(layer.geometry, d_model)});
  }
  return after;
}

}  // namespace

std::unique_ptr<EncoderDecoder> convert_model(EncoderDecoder& model, const ConvertLayer& convert) {
  const EncoderDecoderConfig& before = model.config();
  Converted converted;
  for (const auto& [name, heads] : model.attentions()) {
    const LayerWeights old = weights_of(model.attention(name), before.d_model);
    try {
      LayerWeights& layer = converted[name] = convert(name, old);
      check_positions(before, old.geometry, layer.geometry);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: {}", name, error.what()));
    }
  }
  const EncoderDecoderConfig after = config_for(before, converted);

  auto made = std::make_unique<EncoderDecoder>(after);
  for (const auto& [name, layer] : converted) put_weights(layer, made->attention(name));
  std::map<std::string, const Parameter*> others;
  model.visit([&](const std::string& name, Parameter& p) { others[name] = &p; });
  made->visit([&](const std::string& name, Parameter& p) {
    const std::string attention = name.substr(0, name.rfind('.'));
    if (converted.contains(attention)) return;
    p.value = others.at(name)->value;
    p.changed();
  });
  return made;
}

std::unique_ptr<EncoderDecoder> without_heads(EncoderDecoder& model, const std::vector<std::string>& heads) {
  std::vector<HeadName> removed;
  for (const std::string& name : heads) {
    for (HeadName& head : model.heads_named(HeadPattern(name))) removed.push_back(std::move(head));
  }
  return convert_model(model, [&](const std::string& attention, const LayerWeights& before) {
    std::vector<int> gone;
    for (int h = 0; h < before.geometry.heads; ++h) {
      if (std::find(removed.begin(), removed.end(), HeadName{attention, h}) != removed.end())
        gone.push_back(h);
    }
    return without_heads(before, gone);
  });
}

namespace {

struct Outputs {
  std::vector<float> memory, logits;
};

Outputs outputs_of(EncoderDecoder& model, const std::vector<int32_t>& source,
                   const std::vector<int32_t>& target, Sites* sites) {
  Tape tape;
  Context context{.tape = tape, .sites = sites};
  Batch read, written;
  read.add(source, 0);
  written.add(target, 0);
  const Var memory = model.encode(context, read.view());
  const Var states = model.decode(context, written.view(), memory, read.view());
  Outputs found;
  for (int64_t i = 0; i < memory.rows(); ++i)
    found.memory.insert(found.memory.end(), memory.value().row(i), memory.value().row(i) + memory.cols());
  Tensor logits(states.rows(), model.config().target_vocabulary());
  model.vocabulary().logits(states.value(), logits.view());
  found.logits.assign(logits.data(), logits.data() + logits.size());
  return found;
}

void note(const std::vector<float>& a, const std::vector<float>& b, double& difference, double& magnitude) {
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
    magnitude = std::max(magnitude, std::abs(static_cast<double>(a[i])));
  }
}

}  // namespace

ModelDifference compare_models(EncoderDecoder& first, EncoderDecoder& second,
                               const std::vector<std::vector<int32_t>>& sources,
                               const std::vector<std::vector<int32_t>>& targets, Sites* sites) {
  if (sources.size() != targets.size()) {
    throw UsageError(
        fmt::format("expected a target for each of the {} sources, got {}", sources.size(), targets.size()));
  }
  ModelDifference found;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Outputs a = outputs_of(first, sources[i], targets[i], sites);
    const Outputs b = outputs_of(second, sources[i], targets[i], nullptr);
    note(a.memory, b.memory, found.memory, found.memory_magnitude);
    note(a.logits, b.logits, found.logits, found.logits_magnitude);
  }
  return found;
}

std::vector<std::vector<int32_t>> random_sentences(const EncoderDecoderConfig& config, int32_t vocabulary,
                                                   int count, uint64_t seed) {
  const std::set<int32_t> special = {config.pad_id, config.eos_id, config.decoder_start_id};
  std::vector<int32_t> words;
  for (int32_t id = 0; id < vocabulary; ++id) {
    if (!special.contains(id)) words.push_back(id);
  }
  Random random(seed);
  std::vector<std::vector<int32_t>> sentences;
  for (int i = 0; i < count; ++i) {
    auto& sentence = sentences.emplace_back();
    const auto longest = static_cast<uint32_t>(std::min(config.max_positions, 30));
    const uint32_t length = 1 + random.below(longest);
    while (sentence.size() + 1 < length && !words.empty())
      sentence.push_back(words[random.below(static_cast<uint32_t>(words.size()))]);
    sentence.push_back(config.eos_id);
  }
  return sentences;
}

}  // namespace mh
