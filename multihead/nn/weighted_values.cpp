#include "multihead/nn/weighted_values.h"

#include <fmt/format.h>

#include "multihead/autograd/gate_heads.h"
#include "multihead/autograd/map_rows.h"
#include "multihead/base/error.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

bool wants_any(const HeadsOf& whose, SitePart part, HeadRange heads) {
  for (int head = heads.begin; head < heads.end; ++head) {
    if (whose.context.wants({whose.attention, part, head})) return true;
  }
  return false;
}

}  // namespace

Var at_map(const HeadsOf& whose, SitePart part, int head, Var maps, const AttentionInputs& inputs, int number,
           HeadRange heads) {
  const Site site{whose.attention, part, head};
  if (!whose.context.wants(site)) return maps;
  Tape& tape = whose.context.tape;
  const Var rows = map_rows(tape, maps, inputs, number, heads);
  const std::span<int32_t> keys = tape.arena().array<int32_t>(rows.rows());
  for (size_t s = 0; s + 1 < inputs.query_offsets.size(); ++s) {
    for (int32_t row = inputs.query_offsets[s]; row < inputs.query_offsets[s + 1]; ++row)
      keys[static_cast<size_t>(row)] = inputs.key_offsets[s + 1] - inputs.key_offsets[s];
  }
  const Var found = whose.context.at(site, {.value = rows,
                                            .rows = whose.places,
                                            .keys = keys,
                                            .mask = inputs.mask,
                                            .query_offsets = inputs.query_offsets});
  return found == rows ? maps : replace_map_rows(tape, maps, found, inputs, number, heads);
}

std::vector<ComposedHead> composed_heads(const HeadsOf& whose, Var q, Var k, Var v,
                                         const AttentionInputs& inputs, const LearnedInputs& learned,
                                         int softmaxes, const std::function<Var(Var)>& weights_of) {
  std::vector<ComposedHead> changed;
  if (whose.context.sites == nullptr) return changed;
  Tape& tape = whose.context.tape;
  for (int head = 0; head < inputs.heads / softmaxes; ++head) {
    const HeadRange own{head * softmaxes, (head + 1) * softmaxes}, one{own.begin, own.begin + 1};
    const bool scores_wanted = wants_any(whose, SitePart::kScores, own);
    if (!scores_wanted && !wants_any(whose, SitePart::kWeights, {head, head + 1})) continue;
    if (!k) {
      k = widened(tape, inputs.half_k);
      v = widened(tape, inputs.half_v);
    }
    const Var scores = attention_scores(tape, q, k, inputs, learned, own);
    Var taken = scores;
    for (int s = own.begin; s < own.end; ++s)
      taken = at_map(whose, SitePart::kScores, s, taken, inputs, s, own);
    const Var each = !scores_wanted && !taken.wants_gradient()
                         ? softmax_maps_in_place(tape, taken, inputs, own)
                         : softmax_maps(tape, taken, inputs, own);
    const Var weights = weights_of ? weights_of(each) : each;
    const Var used = at_map(whose, SitePart::kWeights, head, weights, inputs, own.begin, one);
    if (taken == scores && used == weights) continue;
    changed.push_back({head, weigh_values(tape, drop_maps(tape, used, inputs, one), v, inputs, one)});
  }
  return changed;
}

Var gated(Tape& tape, Var heads, const LearnedInputs& learned, const AttentionInputs& inputs) {
  return learned.gates ? gate_heads(tape, heads, learned.gates, inputs.query_offsets) : heads;
}

void refuse_dropout(const HeadsOf& whose, const AttentionInputs& inputs, const char* kind) {
  if (!inputs.dropout.active()) return;
  throw UsageError(
      fmt::format("{}: scores and weights of {} heads cannot be replaced or watched while weights are "
                  "dropped; leave dropout out",
                  whose.attention, kind));
}

std::unique_ptr<WeightedValues> make_weighted_values(const HeadGeometry& geometry, int layer) {
  return weight_scheme_of(geometry).make(geometry, layer);
}

}  // namespace mh
