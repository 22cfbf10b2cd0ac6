#include "multihead/heads/conversion/convert_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/batch/batch.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

/// Whether each head has queries and keys of its own, which positions may turn.
bool turns_alone(const HeadGeometry& g, int d_model) {
  const HeadScheme& scheme = scheme_of(g);
  return scheme.projects_keys() && scheme.shape(g, d_model).d_key == g.d_key;
}

void check_positions(const ModelFacts& facts, const HeadGeometry& before, const HeadGeometry& after) {
  if (facts.positions == Positions::kRotary &&
      !(turns_alone(before, facts.d_model) && turns_alone(after, facts.d_model)))
    throw UsageError(
        "rotary positions turn each head's queries and keys before their product, so that these cannot "
        "become one matrix or shared ones");
  if (facts.positions == Positions::kAlibi && before.heads != after.heads)
    throw UsageError("ALiBi positions give each head a slope by its number, so that heads cannot be removed");
}

}  // namespace

std::unique_ptr<Model> convert_model(Model& model, const ConvertLayer& convert) {
  const ModelFacts facts = model.facts();
  std::map<std::string, LayerWeights> converted;
  HeadsOfAttentions heads;
  for (const auto& [name, count, place] : model.attentions()) {
    const LayerWeights old = weights_of(model.attention(name), facts.d_model);
    try {
      LayerWeights& layer = converted[name] = convert(name, old);
      check_positions(facts, old.geometry, layer.geometry);
      heads[name] = layer.geometry;
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: {}", name, error.what()));
    }
  }
  std::unique_ptr<Model> made = model.with_heads(heads);
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

std::unique_ptr<Model> without_heads(Model& model, const std::vector<std::string>& heads) {
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
    return gone.empty() ? before : without_heads(before, gone);
  });
}

namespace {

struct Outputs {
  std::vector<float> memory = {}, states = {}, logits = {};
};

std::vector<float> numbers_of(ConstMatrixView rows) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < rows.rows; ++i) numbers.insert(numbers.end(), rows.row(i), rows.row(i) + rows.cols);
  return numbers;
}

Outputs outputs_of(const Model& model, const std::vector<int32_t>& source, const std::vector<int32_t>& target,
                   Sites* sites) {
  Tape tape;
  Context context{.tape = tape, .sites = sites};
  const bool translates = !target.empty();
  SiteValues kept;
  if (translates) kept.keep("encoder.states");
  SitesInTurn in_turn(sites, kept);
  context.sites = &in_turn;
  Batch read, written;
  read.add(source, 0);
  if (translates) written.add(target, 0);
  const Sequences rows = (translates ? written : read).view();
  const Var states = model.read(context, read.view(), translates ? written.view() : Sequences());
  Outputs found{.states = numbers_of(states.value())};
  if (translates) found.memory = numbers_of(kept.value("encoder.states").view());
  if (model.predicts()) found.logits = numbers_of(model.logits(context, states, rows).value());
  return found;
}

void note(const std::vector<float>& a, const std::vector<float>& b, Difference& found) {
  for (size_t i = 0; i < a.size(); ++i) {
    found.largest = std::max(found.largest, std::abs(static_cast<double>(a[i]) - b[i]));
    found.magnitude = std::max(found.magnitude, std::abs(static_cast<double>(a[i])));
  }
}

}  // namespace

ModelDifference compare_models(const Model& first, const Model& second,
                               const std::vector<std::vector<int32_t>>& sources,
                               const std::vector<std::vector<int32_t>>& targets, Sites* sites) {
  const bool translates = first.kind() == ModelKind::kTranslator;
  if (translates && sources.size() != targets.size()) {
    throw UsageError(
        fmt::format("expected a target for each of the {} sources, got {}", sources.size(), targets.size()));
  }
  if (!translates && !targets.empty()) throw UsageError("only a translator reads targets; leave them out");
  ModelDifference found;
  if (translates) found.memory.emplace();
  if (first.predicts()) found.logits.emplace();
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::vector<int32_t> none;
    const std::vector<int32_t>& target = translates ? targets[i] : none;
    const Outputs a = outputs_of(first, sources[i], target, sites);
    const Outputs b = outputs_of(second, sources[i], target, nullptr);
    note(a.states, b.states, found.states);
    if (found.memory) note(a.memory, b.memory, *found.memory);
    if (found.logits) note(a.logits, b.logits, *found.logits);
  }
  return found;
}

std::vector<std::vector<int32_t>> random_sentences(const ModelFacts& facts, int32_t vocabulary, int count,
                                                   uint64_t seed) {
  const std::set<int32_t> special = {facts.pad_id, facts.eos_id, facts.start_id};
  std::vector<int32_t> words;
  for (int32_t id = 0; id < vocabulary; ++id) {
    if (!special.contains(id)) words.push_back(id);
  }
  Random random(seed);
  std::vector<std::vector<int32_t>> sentences;
  for (int i = 0; i < count; ++i) {
    auto& sentence = sentences.emplace_back();
    const auto longest = static_cast<uint32_t>(std::min(facts.max_positions, 30));
    const uint32_t length = 1 + random.below(longest);
    while (sentence.size() + 1 < length && !words.empty())
      sentence.push_back(words[random.below(static_cast<uint32_t>(words.size()))]);
    if (facts.eos_id >= 0) sentence.push_back(facts.eos_id);
    if (sentence.empty()) sentence.push_back(words.at(0));
  }
  return sentences;
}

}  // namespace mh
