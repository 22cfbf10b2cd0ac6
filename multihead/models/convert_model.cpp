#include "multihead/models/convert_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/kernels/attention.h"

namespace mh {
namespace {

bool of_encoder(const std::string& attention) {
  return attention.starts_with("encoder.");
}

/// With what stands for itself left unset again, so that both sides of a model can share one description.
HeadGeometry shortest(HeadGeometry g, int d_model) {
  const auto same = [&](const HeadGeometry& shorter) {
    return problems(shorter, d_model).empty() && completed(shorter, d_model, "") == completed(g, d_model, "");
  };
  const auto unset = [&](auto field, auto value) {
    HeadGeometry shorter = g;
    shorter.*field = value;
    if (same(shorter)) g = shorter;
  };
  unset(&HeadGeometry::scale, std::optional<float>());
  unset(&HeadGeometry::value_heads, 0);
  unset(&HeadGeometry::key_heads, 0);
  unset(&HeadGeometry::d_value, 0);
  unset(&HeadGeometry::d_key, 0);
  unset(&HeadGeometry::shared_size, 0);
  g.heads = HeadGeometry().heads;
  return g;
}

void check_positions(const EncoderDecoderConfig& config, const HeadGeometry& before,
                     const HeadGeometry& after) {
  const auto products = [](const HeadGeometry& g) {
    return g.scores == Scores::kMerged || g.scores == Scores::kCollaborative;
  };
  if (config.positions == Positions::kRotary && (products(before) || products(after)))
    throw UsageError(
        "rotary positions turn each head's queries and keys before their product, so that these cannot "
        "become one matrix or shared ones");
  if (config.positions == Positions::kAlibi && before.heads != after.heads)
    throw UsageError("ALiBi positions give each head a slope by its number, so that heads cannot be removed");
}

/// Whether a model with this description has these heads.
bool describes(HeadGeometry shared, const HeadGeometry& side, int d_model) {
  shared.heads = side.heads;
  return problems(shared, d_model).empty() && completed(shared, d_model, "") == side;
}

}  // namespace

std::unique_ptr<EncoderDecoder> convert_model(EncoderDecoder& model, const ConvertLayer& convert) {
  const EncoderDecoderConfig& before = model.config();
  std::map<std::string, LayerWeights> converted;
  std::map<bool, HeadGeometry> of_side;
  for (const auto& [name, heads] : model.attentions()) {
    const LayerWeights old = weights_of(model.attention(name), before.d_model);
    try {
      LayerWeights& layer = converted[name] = convert(name, old);
      check_positions(before, old.geometry, layer.geometry);
      const auto [side, first] = of_side.try_emplace(of_encoder(name), layer.geometry);
      if (!first && side->second != layer.geometry) {
        throw UsageError(
            fmt::format("it ends with {} heads, another attention of its side with {} or of another "
                        "description; all must be the same",
                        layer.geometry.heads, side->second.heads));
      }
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: {}", name, error.what()));
    }
  }
  EncoderDecoderConfig after = before;
  after.encoder_heads = of_side.at(true).heads;
  after.decoder_heads = of_side.at(false).heads;
  const HeadGeometry &encoder = of_side.at(true), &decoder = of_side.at(false);
  const HeadGeometry candidates[] = {shortest(encoder, before.d_model), shortest(decoder, before.d_model)};
  const auto found =
      std::find_if(std::begin(candidates), std::end(candidates), [&](const HeadGeometry& shared) {
        return describes(shared, encoder, before.d_model) && describes(shared, decoder, before.d_model);
      });
  if (found == std::end(candidates)) {
    throw UsageError(
        "the heads of encoder and decoder would need different descriptions, but a model has one; "
        "convert a model whose sides have equal heads");
  }
  after.geometry = *found;

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
  Interventions removed;  // it knows how heads are named
  for (const std::string& head : heads) removed.mute(head);
  model.check(removed);
  return convert_model(model, [&](const std::string& attention, const LayerWeights& before) {
    Arena memory;
    const std::span<const float> gates = removed.gates(attention, before.geometry.heads, memory);
    std::vector<int> gone;
    for (size_t h = 0; h < gates.size(); ++h) {
      if (gates[h] == 0) gone.push_back(static_cast<int>(h));
    }
    return without_heads(before, gone);
  });
}

namespace {

struct Outputs {
  std::vector<float> memory, logits;
};

Outputs outputs_of(EncoderDecoder& model, const std::vector<int32_t>& source,
                   const std::vector<int32_t>& target, const Interventions* interventions) {
  Tape tape;
  Context context{.tape = tape, .interventions = interventions};
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
                               const std::vector<std::vector<int32_t>>& targets,
                               const Interventions* interventions) {
  MH_ASSERT(sources.size() == targets.size());
  ModelDifference found;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Outputs a = outputs_of(first, sources[i], targets[i], interventions);
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
