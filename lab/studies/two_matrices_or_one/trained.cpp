#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/comparison.h"
#include "lab/studies/lab.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh::two_matrices_or_one {
namespace {

using lab::Matrix;
using lab::product_transposed;

/// The parameters of every attention of a model, by the attention's name.
struct AttentionParameters {
  std::map<std::string, std::map<std::string, Parameter*>> of;
  explicit AttentionParameters(EncoderDecoder& model) {
    model.visit([&](const std::string& name, Parameter& p) {
      const size_t dot = name.rfind('.');
      if (name.find("attention.") != std::string::npos) of[name.substr(0, dot)][name.substr(dot + 1)] = &p;
    });
  }
};

Matrix head_of(const Parameter& p, int head, int64_t width) {
  return in_double(ConstMatrixView(p.value.view()).columns_between(head * width, (head + 1) * width));
}

void put(Parameter& p, int head, const Matrix& numbers) {
  for (int64_t r = 0; r < numbers.rows(); ++r) {
    for (int64_t c = 0; c < numbers.cols(); ++c)
      p.value(r, head * numbers.cols() + c) = static_cast<float>(numbers(r, c));
  }
  p.changed();
}

}  // namespace

void truncate(EncoderDecoder& model, int heads, int64_t rank) {
  AttentionParameters attentions(model);
  for (auto& [name, p] : attentions.of) {
    const int64_t width = p.at("w_q")->value.cols() / heads;
    for (int h = 0; h < heads; ++h) {
      const Matrix q = head_of(*p.at("w_q"), h, width), k = head_of(*p.at("w_k"), h, width);
      const Svd parts = svd(product_transposed(q, k).view());
      Matrix new_q(q.rows(), width), new_k(k.rows(), width);
      for (int64_t r = 0; r < std::min(rank, width); ++r) {
        const double root = std::sqrt(parts.values[static_cast<size_t>(r)]);
        for (int64_t i = 0; i < q.rows(); ++i) new_q(i, r) = root * parts.left(i, r);
        for (int64_t i = 0; i < k.rows(); ++i) new_k(i, r) = root * parts.right(i, r);
      }
      // b_q reaches the scores as W^K b_q^T: the nearest that the new W^K can say.
      const Matrix wanted = product_transposed(k, head_of(*p.at("b_q"), h, width));
      put(*p.at("b_q"), h, lab::transposed(least_squares(new_k.view(), wanted.view())));
      put(*p.at("b_k"), h, Matrix(1, width));  // cancels in the softmax
      put(*p.at("w_q"), h, new_q);
      put(*p.at("w_k"), h, new_k);
    }
  }
}

namespace {

/// Of every attention of a trained canonical model, by name: the singular values of its heads' W_i^Q W_i^K^T, each
/// relative to the largest, the mean over heads.
std::map<std::string, std::vector<double>> spectra_of(EncoderDecoder& model, int heads) {
  std::map<std::string, std::vector<double>> spectra;
  AttentionParameters attentions(model);
  for (auto& [name, p] : attentions.of) {
    const int64_t key = p.at("w_q")->value.cols() / heads;
    std::vector<double>& mean = spectra[name];
    for (int h = 0; h < heads; ++h) {
      const auto values =
          svd(product_transposed(head_of(*p.at("w_q"), h, key), head_of(*p.at("w_k"), h, key)).view()).values;
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
  Claim claim{
      .id = "002.2",
      .statement =
          "rank(W_i) <= d_k: what two thin matrices give up is rank. How much of it trained heads need.",
      .original_words = "\"I understand now, actually the resulting W matrix is rank deficient.\""};
  std::vector<int> kept;
  for (int rank = key; rank >= 1; rank = rank > 4 ? rank / 2 : rank - 1) kept.push_back(rank);
  double beyond = 0;
  std::map<int, std::vector<double>> more;  // loss beyond that of the whole model, by rank kept and by seed
  Plot spectra{.title = "Singular values of trained heads' W_i, first seed",
               .x_label = "number",
               .y_label = "relative to the largest"};
  for (const uint64_t seed : runner.seeds()) {
    const auto model = runner.trained(canonical, seed);
    for (const auto& [name, values] : spectra_of(*model, heads)) {
      for (size_t n = static_cast<size_t>(key); n < values.size(); ++n) beyond = std::max(beyond, values[n]);
      if (seed != runner.seeds()[0]) continue;
      Series series{.name = name};
      for (int n = 0; n < key; ++n)
        series.x.push_back(n + 1), series.y.push_back(values[static_cast<size_t>(n)]);
      spectra.series.push_back(std::move(series));
    }
    const double whole = runner.test_loss(*model);
    for (const int rank : kept) {
      const auto cut = runner.trained(canonical, seed);
      truncate(*cut, heads, rank);
      more[rank].push_back(runner.test_loss(*cut) - whole);
    }
  }
  Table table{"test loss beyond that of the whole model, by the rank kept in every head",
              {"rank", "loss beyond"},
              {}};
  Plot plot{.title = "Loss against the rank kept",
            .x_label = "rank of W_i",
            .y_label = "test loss a token, beyond the whole model's",
            .log_x = true,
            .series = {{.name = "all heads truncated"}}};
  for (const int rank : kept)
    table.rows.push_back({std::to_string(rank), interval_text(interval_of(more[rank]), 4)});
  for (const auto& [rank, numbers] : more) add_point(plot.series[0], rank, numbers);
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(std::move(plot));
  claim.plots.push_back(std::move(spectra));
  claim.clauses.push_back(
      of_every_model("A trained head's W_i [d, d] has rank d_k at most.",
                     "singular values beyond d_k at most 1e-6 of the largest",
                     fmt::format("beyond d_k = {}: at most {:.1e} of the largest, {} seeds", key, beyond,
                                 runner.seeds().size()),
                     beyond <= 1e-6, OriginalSays::kSame));
  add_predictions(claim, {{.statement = "Truncation to rank d_k changes nothing.",
                           .quantity = "loss truncated to d_k minus whole",
                           .by_seed = more[key],
                           .limit = Limit::within(0.001),
                           .digits = 6},
                          {.statement = "Trained heads do not need all of their rank: half of it is as good.",
                           .quantity = fmt::format("loss truncated to {} minus whole", key / 2),
                           .by_seed = more[key / 2],
                           .limit = Limit::within(0.01),
                           .digits = 4}});
  return claim;
}

/// The effective rank, exp of the entropy of the squared singular values, of every merged head of a model.
std::vector<double> effective_ranks(EncoderDecoder& model, int heads) {
  std::vector<double> ranks;
  const int d = model.config().d_model;
  model.visit([&](const std::string& name, Parameter& p) {
    if (name.find(".w_qk") == std::string::npos) return;
    for (int h = 0; h < heads; ++h) {
      const auto values = svd(head_of(p, h, d).view()).values;
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
  std::vector<Arm*> all = both(found.arms);
  all.insert(all.end(), {&found.canonical, &found.large});
  runner.tune(all);
  return found;
}

Claim merged(ArmRunner& runner) {
  const auto [canonical, large, arms] = other_scores(runner, "merged W_i", Scores::kMerged);
  const Arm& equal = arms[0].equal;
  const std::vector<Arm> timed = at_equal_time(runner, {canonical, equal});
  Claim claim{.id = "002.4",
              .statement = "One merged W_i for each head beside two factors, from starts of equal variance.",
              .original_words = "\"Why did the authors not define only a W_i?\"",
              .original_remark = "It is a question; 002.3 and this claim answer it."};
  claim.tables.push_back(
      starts_table(runner, canonical, arms, "as they are: d^2 numbers a head against 2 d d_k"));
  claim.tables.push_back(arm_table(runner, {large, equal}, "equal parameters, by d_ff"));
  claim.tables.push_back(equal_time_table(runner, {canonical, equal}));
  claim.plots.push_back(loss_plot(runner, {canonical, large, equal, arms[0].usual}, "One matrix or two"));
  std::vector<double> ranks;
  const int key = canonical.model.d_model / canonical.model.encoder_heads;
  for (const uint64_t seed : runner.seeds()) {
    const std::vector<double> all_ranks =
        effective_ranks(*runner.trained(equal, seed), equal.model.encoder_heads);
    ranks.push_back(interval_of(all_ranks).mean);
  }
  add_predictions(claim,
                  {{.statement = "At equal parameters two factors are as good as one matrix.",
                    .quantity = "loss of merged minus factored",
                    .by_seed = loss_difference(runner, equal, large),
                    .limit = Limit::within(kMargin)},
                   {.statement = "In equal time two factors are as good as one matrix.",
                    .quantity = "loss of merged minus factored",
                    .by_seed = loss_difference(runner, timed[1], timed[0]),
                    .limit = Limit::within(kMargin)},
                   {.statement = "Merged heads make use of a rank that factors of d_k columns cannot have.",
                    .quantity = "effective rank of a merged head at the end, the mean over heads",
                    .by_seed = ranks,
                    .limit = Limit::above(key),
                    .digits = 1}});
  return claim;
}

Claim doubled(ArmRunner& runner) {
  const auto [canonical, large, arms] = other_scores(runner, "doubled projection", Scores::kDoubled);
  const Arm& equal = arms[0].equal;
  Claim claim{.id = "002.5, trained",
              .statement =
                  "The doubled projection x W^Q W_i^Q can express no more than one matrix; it is trained "
                  "beside one."};
  claim.tables.push_back(starts_table(runner, canonical, arms, "x W^Q W_i^Q beside x W_i^Q"));
  claim.tables.push_back(arm_table(runner, {large, equal}, "equal parameters, by d_ff"));
  claim.plots.push_back(
      loss_plot(runner, {canonical, large, equal, arms[0].usual}, "A matrix before each head's"));
  add_predictions(claim, {{.statement = "The second matrix gains nothing: one is as good.",
                           .quantity = "loss of doubled minus canonical",
                           .by_seed = loss_difference(runner, equal, canonical),
                           .limit = Limit::within(kMargin)},
                          {.statement = "Its parameters do more in the feed-forward layer.",
                           .quantity = "loss of doubled minus canonical with as many parameters",
                           .by_seed = loss_difference(runner, equal, large),
                           .limit = Limit::above(0)}});
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
