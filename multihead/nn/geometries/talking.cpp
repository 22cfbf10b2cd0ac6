// Talking heads (Shazeer et al. 2020): the scores of all heads are mixed before the softmax, and the
// weights again after it, softmax(S P) P' with P and P' [heads, heads]. A softmax of mixed scores needs
// every Tq x Tk matrix at once, so this takes the composed path and not the fused kernel: it is slow, and
// its memory grows with the square of the length. Both matrices start as the identity, so heads do not mix
// at first. Dropout applies to the softmax's weights.
//
// Cost, for M = Tq Tk h numbers in all matrices: h h parameters and M h multiply-adds in scores, and again in
// average, and M for P h in all products.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "multihead/autograd/attention_maps.h"
#include "multihead/autograd/ops.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

class TalkingValues final : public WeightedValues {
 public:
  explicit TalkingValues(int heads) : scores_(heads, heads), weights_(heads, heads) {}

  Var apply(const HeadsOf& whose, Var q, Var k, Var v, const AttentionInputs& inputs,
            const LearnedInputs& learned) const override {
    Tape& tape = whose.context.tape;
    if (inputs.halves()) {
      k = widened(tape, inputs.half_k);
      v = widened(tape, inputs.half_v);
    }
    const Var scores = mix_maps(tape, attention_scores(tape, q, k, inputs, learned), scores_, inputs);
    const Var taken = at_maps(whose, SitePart::kScores, scores, inputs);
    const Var each = softmax_maps(tape, taken, inputs);
    Var used;
    if (whose.context.sites != nullptr || !inputs.dropout.active()) {
      const Var weights = mix_maps(tape, each, weights_, inputs);
      used = at_maps(whose, SitePart::kWeights, weights, inputs);
      if (!(taken == scores && used == weights)) refuse_dropout(whose, inputs, "talking");
    }
    if (inputs.dropout.active()) used = mix_maps(tape, drop_maps(tape, each, inputs), weights_, inputs);
    const Var heads = weigh_values(tape, used, v, inputs);
    return gated(tape, heads, learned, inputs);
  }
  void initialise(Random&) override {
    for (Parameter* mixing : {&scores_, &weights_}) {
      fill_with(*mixing, 0);
      for (int64_t h = 0; h < mixing->value.rows(); ++h) mixing->value(h, h) = 1;
      mixing->changed();
    }
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    visitor(name + ".mixing_of_scores", scores_);
    visitor(name + ".mixing_of_weights", weights_);
  }

 private:
  static Var at_maps(const HeadsOf& whose, SitePart part, Var maps, const AttentionInputs& inputs) {
    for (int h = 0; h < inputs.heads; ++h) maps = at_map(whose, part, h, maps, inputs, h, {});
    return maps;
  }

  Parameter scores_, weights_;  // [heads, heads]: from, to
};

class TalkingScheme final : public WeightScheme {
 public:
  void find_problems(const HeadGeometry& g, const HeadScheme&,
                     std::vector<std::string>& found) const override {
    if (!g.soft_cap) return;
    found.push_back(
        "talking weights mix scores, of which soft_cap could cap those before or after; leave it unset or "
        "set "
        "weights to softmax");
  }
  std::vector<GeometryPreset> presets() const override {
    return {{{"talking", "heads mix their scores, and their weights again (Shazeer et al. 2020); slow"},
             [](int h, int) { return HeadGeometry{.heads = h, .weights = HeadWeights::kTalking}; }}};
  }
  std::unique_ptr<WeightedValues> make(const HeadGeometry& g, int) const override {
    return std::make_unique<TalkingValues>(g.heads);
  }
  const char* unfused() const override { return "talking heads"; }
  const char* refusal(Change) const override {
    return "talking heads mix each other's weights by their numbers";
  }

  void add_to_scores(LedgerPart& cost, const HeadGeometry& g, const WeighedRows& weighed) const override {
    cost.kept_bytes = cost.written_bytes;
    add_mixing(cost, g, weighed);
  }
  void add_to_average(LedgerPart& cost, const HeadGeometry& g, const WeighedRows& weighed) const override {
    add_mixing(cost, g, weighed);
  }
  void add_softmax_moves(LedgerPart& cost, int64_t maps) const override {
    cost.add_moves(maps, maps);  // the scores are scaled as they are made
  }

  bool mixes_heads() const override { return true; }
  void trace_all(WeighingTrace& trace, std::vector<TracedMap> maps) const override {
    maps = mixed(trace, maps, "mixing_of_scores", "mixed");
    for (size_t h = 0; h < maps.size(); ++h)
      maps[h] = trace.add_softmax(fmt::format("softmax_{}", h), static_cast<int>(h), maps[h]);
    maps = mixed(trace, maps, "mixing_of_weights", "weights");
    for (size_t h = 0; h < maps.size(); ++h) {
      const int head = static_cast<int>(h);
      trace.add_output(head, fmt::format("{} {}", maps[h].name, trace.name_of_values(head)),
                       traced_average(trace, head, maps[h]));
    }
  }

 private:
  /// All matrices of weights or scores mixed by one [heads, heads].
  static void add_mixing(LedgerPart& cost, const HeadGeometry& g, const WeighedRows& weighed) {
    cost.parameters = count_sum(cost.parameters, count_product({g.heads, g.heads}));
    cost.multiply_adds = count_sum(cost.multiply_adds, count_product({weighed.maps, g.heads}));
    cost.add_moves(weighed.maps, weighed.maps);
  }
  /// Map h of the result is the sum over g of mixing[g, h] times map g.
  static std::vector<TracedMap> mixed(WeighingTrace& trace, const std::vector<TracedMap>& maps,
                                      const std::string& mixing, const std::string& name) {
    const Tensor& by = trace.parameter(mixing);
    const std::string each = maps[0].name.substr(0, maps[0].name.find('_'));
    const auto heads = static_cast<int>(maps.size());
    std::vector<TracedMap> all;
    for (int h = 0; h < heads; ++h) {
      Var sum = ops::scale(trace.tape(), maps[0].value, by(0, h));
      for (int from = 1; from < heads; ++from)
        sum = ops::add(trace.tape(), sum,
                       ops::scale(trace.tape(), maps[static_cast<size_t>(from)].value, by(from, h)));
      all.push_back(trace.add_map(fmt::format("{}_{}", name, h),
                                  fmt::format("sum over g of {}[g, {}] {}_g", mixing, h, each), h, sum));
    }
    return all;
  }
};

}  // namespace

template <>
const WeightScheme& weight_scheme<HeadWeights::kTalking>() {
  static const TalkingScheme scheme;
  return scheme;
}

}  // namespace mh
