// 002, trained. (002.3 is times.cpp, 002.6 stored.cpp.)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lab/studies/claim_words.h"
#include "lab/studies/comparison.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/layer_weights.h"

namespace mh::two_matrices_or_one {
namespace {

using lab::Matrix;
using lab::product_transposed;

void put(LayerWeights& layer, const char* name, int head, const Matrix& numbers) {
  Tensor& all = layer.values.at(name);
  const int64_t width = numbers.cols();
  for (int64_t i = 0; i < numbers.size(); ++i)
    all(i / width, head * width + i % width) = static_cast<float>(numbers.data()[i]);
}

}  // namespace

void truncate(EncoderDecoder& model, int heads, int64_t rank) {
  for (const auto& attention : model.attentions()) {
    LayerWeights layer = weights_of(model.attention(attention.name), model.config().encoder.d_model);
    for (int h = 0; h < heads; ++h) {
      const HeadMatrix queries = head_matrix(layer, HeadPart::kQueries, h);
      const Matrix& q = queries.weight;
      const Matrix k = head_matrix(layer, HeadPart::kKeys, h).weight;
      const int64_t width = q.cols();
      const Svd parts = svd(product_transposed(q, k).view());
      Matrix new_q(q.rows(), width), new_k(k.rows(), width);
      for (int64_t r = 0; r < std::min(rank, width); ++r) {
        const double root = std::sqrt(parts.values[static_cast<size_t>(r)]);
        for (int64_t i = 0; i < q.rows(); ++i) new_q(i, r) = root * parts.left(i, r);
        for (int64_t i = 0; i < k.rows(); ++i) new_k(i, r) = root * parts.right(i, r);
      }
      // b_q reaches the scores as W^K b_q^T: the nearest that the new W^K can say.
      const Matrix wanted = product_transposed(k, queries.bias);
      put(layer, "b_q", h, lab::transposed(least_squares(new_k.view(), wanted.view())));
      put(layer, "b_k", h, Matrix(1, width));  // cancels in the softmax
      put(layer, "w_q", h, new_q);
      put(layer, "w_k", h, new_k);
    }
    put_weights(layer, model.attention(attention.name));
  }
}

namespace {

/// Of every attention of a trained canonical model, by name: the singular values of its heads' W_i^Q W_i^K^T, each
/// relative to the largest, the mean over heads.
std::map<std::string, std::vector<double>> spectra_of(const EncoderDecoder& model) {
  std::map<std::string, std::vector<double>> spectra;
  for (const auto& [name, heads, place] : model.attentions()) {
    const LayerWeights layer = weights_of(model.attention(name), model.config().encoder.d_model);
    std::vector<double>& mean = spectra[name];
    for (int h = 0; h < heads; ++h) {
      const Matrix q = head_matrix(layer, HeadPart::kQueries, h).weight,
                   k = head_matrix(layer, HeadPart::kKeys, h).weight;
      const std::vector<double> values = svd(product_transposed(q, k).view()).values;
      mean.resize(values.size(), 0);
      for (size_t n = 0; n < values.size(); ++n) mean[n] += values[n] / values[0] / heads;
    }
  }
  return spectra;
}

Claim ranks(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner);
  runner.tune({&canonical});
  const int heads = canonical.model.encoder_heads, key = canonical.model.d_model / heads;
  Claim claim = claim_without_figures("002.2", {{"half", std::to_string(key / 2)}});
  auto &loss = claim.plots[0].series, &spectra = claim.plots[1].series;
  std::vector<int> kept;
  for (int rank = key; rank >= 1; rank = rank > 4 ? rank / 2 : rank - 1) kept.push_back(rank);
  double beyond = 0;
  std::map<int, std::vector<double>> more;  // loss beyond that of the whole model, by rank kept and by seed
  for (const uint64_t seed : runner.seeds()) {
    const auto model = runner.trained(canonical, seed);
    for (const auto& [name, values] : spectra_of(*model)) {
      for (size_t n = static_cast<size_t>(key); n < values.size(); ++n) beyond = std::max(beyond, values[n]);
      if (seed != runner.seeds()[0]) continue;
      spectra.push_back({.name = name, .y = {values.begin(), values.begin() + key}});
      for (int n = 0; n < key; ++n) spectra.back().x.push_back(n + 1);
    }
    const double whole = runner.test_loss(*model);
    for (const int rank : kept) {
      const auto cut = runner.trained(canonical, seed);
      truncate(*cut, heads, rank);
      more[rank].push_back(runner.test_loss(*cut) - whole);
    }
  }
  for (const int rank : kept)
    claim.tables[0].rows.push_back({std::to_string(rank), interval_text(more[rank], 4)});
  loss.push_back({.name = "all heads truncated"});
  for (const auto& [rank, numbers] : more) add_point(loss[0], rank, numbers);
  decide(claim, beyond <= 1e-6,
         fmt::format("beyond d_k = {}: at most {:.1e} of the largest, {} seeds", key, beyond,
                     runner.seeds().size()));
  predict(claim, {{more[key], Limit::within(0.001), 6}, {more[key / 2], Limit::within(0.01), 4}});
  return claim;
}

/// The effective rank, exp of the entropy of the squared singular values, of every merged head of a model.
std::vector<double> effective_ranks(EncoderDecoder& model, int heads) {
  std::vector<double> ranks;
  const int d = model.config().encoder.d_model;
  model.visit([&](const std::string& name, Parameter& p) {
    if (name.find(".w_qk") == std::string::npos) return;
    const Matrix all = in_double(p.value.view());
    for (int h = 0; h < heads; ++h) {
      const auto values = svd(lab::columns(all, h * d, (h + 1) * d).view()).values;
      double sum = 0, entropy = 0;
      for (const double v : values) sum += v * v;
      for (const double v : values) entropy -= v > 0 ? v * v / sum * std::log(v * v / sum) : 0;
      ranks.push_back(std::exp(entropy));
    }
  });
  return ranks;
}

/// An arm with other scores, from both starts, beside the canonical one as it is and with as many parameters; each
/// has its learning rate.
struct OtherScores {
  Arm canonical, large;
  std::vector<TwoStarts> arms;  // one
};
OtherScores other_scores(ArmRunner& runner, const char* name, Scores scores) {
  Arm other = runner.base(name);
  other.model.geometry.scores = scores;
  const Arm canonical = canonical_arm(runner);
  OtherScores found{canonical, enlarged(canonical, other), {two_starts(other)}};
  runner.tune(both(found.arms, {&found.canonical, &found.large}));
  return found;
}

/// Both claims' first tables and their plot.
void fill(Claim& claim, ArmRunner& runner, const OtherScores& found) {
  const auto& [canonical, large, arms] = found;
  fill_starts(claim.tables[0], runner, canonical, arms);
  fill_arms(claim.tables[1], runner, {large, arms[0].equal});
  fill_losses(claim.plots[0], runner, {canonical, large, arms[0].equal, arms[0].usual});
}

Claim merged(ArmRunner& runner) {
  const OtherScores found = other_scores(runner, "merged W_i", Scores::kMerged);
  const Arm &canonical = found.canonical, &equal = found.arms[0].equal;
  const std::vector<Arm> timed = at_equal_time(runner, {canonical, equal});
  Claim claim = claim_without_figures("002.4");
  fill(claim, runner, found);
  fill_equal_time(claim.tables[2], runner, {canonical, equal});
  const int heads = canonical.model.encoder_heads, key = canonical.model.d_model / heads;
  std::vector<double> ranks;
  for (const uint64_t seed : runner.seeds())
    ranks.push_back(interval_of(effective_ranks(*runner.trained(equal, seed), heads)).mean);
  predict(claim, {{loss_difference(runner, equal, found.large), Limit::within(kMargin)},
                  {loss_difference(runner, timed[1], timed[0]), Limit::within(kMargin)},
                  {ranks, Limit::above(key), 1}});
  return claim;
}

Claim doubled(ArmRunner& runner) {
  const OtherScores found = other_scores(runner, "doubled projection", Scores::kDoubled);
  const Arm& equal = found.arms[0].equal;
  Claim claim = claim_without_figures("002.5, trained");
  fill(claim, runner, found);
  predict(claim, {{loss_difference(runner, equal, found.canonical), Limit::within(kMargin)},
                  {loss_difference(runner, equal, found.large), Limit::above(0)}});
  return claim;
}

/// 002.9: heads that share W^Q and W^K (Cordonnier et al. 2020), by the size of what they share. The claim's last
/// table is that of github.com/epfml/collaborative-attention, its experiments in translation; 16 heads of 64 are
/// canonical there.
Claim shared_keys(ArmRunner& runner) {
  std::vector<Arm> arms = {canonical_arm(runner)};
  const int d = arms[0].model.d_model, heads = arms[0].model.encoder_heads;
  const auto add = [&](std::string name) -> HeadGeometry& {
    arms.push_back(runner.base(std::move(name)));
    arms.back().start = Start::kEqualVariances;
    return arms.back().model.geometry;
  };
  struct Pair {
    int size;
    size_t divided = 0, shared = 0;  // arms
  };
  std::vector<Pair> pairs = {{d}, {d / 2}, {d / 4}, {d / 8}};
  for (auto& [size, divided, shared] : pairs) {
    if (size != d) {
      divided = arms.size();
      HeadGeometry& g = add(fmt::format("{} heads of d_k = {}", heads, size / heads));
      g.d_key = size / heads;
      g.d_value = d / heads;
    }
    shared = arms.size();
    HeadGeometry& g = add(fmt::format("collaborative, D_k = {}", size));
    g.scores = Scores::kCollaborative;
    g.shared_size = size;
    g.d_key = g.d_value = d / heads;
  }
  runner.tune(arms);
  Claim claim = claim_without_figures("002.9", {{"heads", std::to_string(heads)}});
  fill_arms(claim.tables[0], runner, arms);
  const auto minus = [&](size_t a, size_t b) { return loss_difference(runner, arms[a], arms[b]); };
  const auto bleu = [&](size_t arm) {
    return interval_text(of_runs(runner.runs(arms[arm]), [](const ArmRun& run) { return run.bleu; }), 1);
  };
  auto& rows = claim.tables[1].rows;
  auto& series = claim.plots[0].series;
  series = {{.name = "heads of D_k/h"}, {.name = "collaborative"}};
  for (const auto& [size, divided, shared] : pairs) {
    rows.push_back({std::to_string(size), fmt::format("{:g}", static_cast<double>(size) / d),
                    interval_text(minus(divided, 0)), interval_text(minus(shared, 0)), bleu(divided),
                    bleu(shared)});
  }
  for (size_t i = pairs.size(); i-- > 0;) {  // x rises
    add_point(series[0], pairs[i].size, losses(runner.runs(arms[pairs[i].divided])));
    add_point(series[1], pairs[i].size, losses(runner.runs(arms[pairs[i].shared])));
  }
  predict(claim, {{minus(pairs[1].shared, 0), Limit::within(kMargin)},
                  {minus(pairs[2].shared, 0), Limit::within(kMargin)},
                  {minus(pairs[3].shared, pairs[3].divided), Limit::below(0)}});
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {{"002.2", ranks},          {"002.3, times", times},
                                             {"002.4", merged},         {"002.5, trained", doubled},
                                             {"002.6, loaded", loaded}, {"002.9", shared_keys, true}};
  return kChecks;
}

}  // namespace mh::two_matrices_or_one
