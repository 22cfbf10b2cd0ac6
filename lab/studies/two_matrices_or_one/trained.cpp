#include <fmt/format.h>

#include <algorithm>
#include <chrono>
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

struct Arms {
  Arm canonical, merged, doubled;
};
Arms make(const ArmRunner& runner) {
  Arms a{runner.base(fmt::format("canonical, {} heads", runner.settings().model.encoder_heads)),
         runner.base("merged W_i"), runner.base("doubled projection")};
  a.merged.model.geometry.scores = Scores::kMerged;
  a.doubled.model.geometry.scores = Scores::kDoubled;
  return a;
}

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

/// Every head's W_i^Q W_i^K^T becomes the nearest matrix of this rank; its query bias follows as well as it
/// can.
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

Claim ranks(ArmRunner& runner, const Arms& a) {
  const int heads = a.canonical.model.encoder_heads, key = a.canonical.model.d_model / heads;
  Claim claim{
      .id = "002.2",
      .statement =
          "rank(W_i) <= d_k: what two thin matrices give up is rank; trained heads do not need all of it.",
      .original = "\"I understand now, actually the resulting W matrix is rank deficient.\"",
      .said = Said::kRight,
      .tolerance =
          "singular values beyond d_k at most 1e-6 of the largest; truncated to d_k the loss moves by at "
          "most 1e-3",
      .trained = true};
  const auto model = runner.trained(a.canonical, runner.seeds()[0]);
  AttentionParameters attentions(*model);
  double beyond = 0;
  Plot spectra{"Singular values of trained heads' W_i", "number", "relative to the largest", false, {}};
  for (auto& [name, p] : attentions.of) {
    Series mean{name, {}, std::vector<double>(static_cast<size_t>(key), 0), {}, {}};
    for (int n = 1; n <= key; ++n) mean.x.push_back(n);
    for (int h = 0; h < heads; ++h) {
      const auto values =
          svd(product_transposed(head_of(*p.at("w_q"), h, key), head_of(*p.at("w_k"), h, key)).view()).values;
      for (size_t n = 0; n < values.size(); ++n) {
        if (n < static_cast<size_t>(key))
          mean.y[n] += values[n] / values[0] / heads;
        else
          beyond = std::max(beyond, values[n] / values[0]);
      }
    }
    spectra.series.push_back(std::move(mean));
  }
  const double whole = runner.test_loss(*model);
  Table table{"test loss against rank kept in every head", {"rank", "loss", "more than all"}, {}};
  Plot plot{"Loss against the rank kept",
            "rank of W_i",
            "test loss a token",
            true,
            {{"all heads truncated", {}, {}, {}, {}}}};
  double at_key = 0;
  int enough = key;
  for (int rank = key; rank >= 1; rank = rank > 4 ? rank / 2 : rank - 1) {
    const auto cut = runner.trained(a.canonical, runner.seeds()[0]);
    truncate(*cut, heads, rank);
    const double loss = runner.test_loss(*cut);
    if (rank == key) at_key = std::abs(loss - whole);
    if (loss - whole <= 0.01) enough = rank;
    table.rows.push_back(
        {std::to_string(rank), fmt::format("{:.4f}", loss), fmt::format("{:+.4f}", loss - whole)});
    plot.series[0].x.insert(plot.series[0].x.begin(), rank);
    plot.series[0].y.insert(plot.series[0].y.begin(), loss);
  }
  claim.measured = fmt::format(
      "singular values beyond d_k = {}: at most {:.1e} of the largest; truncation to d_k moves the loss by "
      "{:.1e}; rank {} is enough for a loss within 0.01",
      key, beyond, at_key, enough);
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(std::move(spectra));
  claim.plots.push_back(std::move(plot));
  claim.verdict = beyond <= 1e-6 && at_key <= 1e-3 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

double seconds_of(int d_model, int key, Scores scores, int tokens) {
  lab::Layer layer({.heads = 2, .d_key = key, .d_value = 16, .scores = scores, .biases = Biases::kNone},
                   d_model, 1);
  Random random(1, 23);
  const Matrix x = lab::random_matrix(tokens, d_model, random);
  return layer.forward_seconds(x);
}

Claim times(ArmRunner&, const Arms&) {
  Claim claim{
      .id = "002.3",
      .statement =
          "In time, too, one matrix pays off only for wide keys or few words: merged wins iff T (d - d_k) < "
          "d (2 d_k - d).",
      .original =
          "\"In deep learning applications, I think it would be very inefficient\" (of two matrices).",
      .said = Said::kHalfRight,
      .trained = true};
  Table table{
      "a layer's forward pass, 2 heads", {"T, d, d_k", "two us", "one us", "quicker", "formula says"}, {}};
  int agree = 0;
  for (const auto& [t, d, k] :
       {std::array{16, 256, 256}, std::array{64, 256, 224}, std::array{512, 256, 64},
        std::array{512, 128, 32}, std::array{32, 128, 128}, std::array{1024, 128, 96}}) {
    const double two = seconds_of(d, k, Scores::kQueryKey, t), one = seconds_of(d, k, Scores::kMerged, t);
    const bool merged_wins = int64_t{t} * (d - k) < int64_t{d} * (2 * k - d);
    agree += merged_wins == (one < two);
    table.rows.push_back({fmt::format("{}, {}, {}", t, d, k), fmt::format("{:.0f}", 1e6 * two),
                          fmt::format("{:.0f}", 1e6 * one), one < two ? "one" : "two",
                          merged_wins ? "one" : "two"});
  }
  claim.measured = fmt::format("the clock agrees with the count of multiplications in {} of {} shapes", agree,
                               table.rows.size());
  claim.tables.push_back(std::move(table));
  return claim;
}

Claim merged(ArmRunner& runner, const Arms& a) {
  Claim claim{
      .id = "002.4",
      .statement = "Trained with one merged W_i a head, against two factors, from equal variance of scores.",
      .original = "\"Why did the authors not define only a W_i?\"",
      .trained = true};
  claim.tables.push_back(
      arm_table(runner, {a.canonical, a.merged}, "merged has d^2 numbers a head, factored 2 d d_k"));
  const auto model = runner.trained(a.merged, runner.seeds()[0]);
  const int heads = a.merged.model.encoder_heads, d = a.merged.model.d_model;
  double effective = 0, largest = 0;
  int matrices = 0;
  model->visit([&](const std::string& name, Parameter& p) {
    if (name.find(".w_qk") == std::string::npos) return;
    for (int h = 0; h < heads; ++h) {
      const auto values = svd(head_of(p, h, d).view()).values;
      double sum = 0, entropy = 0;
      for (const double v : values) sum += v * v;
      for (const double v : values) entropy -= v > 0 ? v * v / sum * std::log(v * v / sum) : 0;
      effective += std::exp(entropy);
      largest = std::max(largest, std::exp(entropy));
      ++matrices;
    }
  });
  const Interval difference = difference_of(losses(runner.runs(a.merged)), losses(runner.runs(a.canonical)));
  claim.plots.push_back(curve_plot(runner, {a.canonical, a.merged}, "One matrix or two"));
  claim.measured = fmt::format(
      "loss of merged minus factored {}; the effective rank that merged heads end with is {:.1f} in the mean "
      "and at most {:.1f} of {} (factored could have {})",
      shown(difference), effective / matrices, largest, d, d / heads);
  return claim;
}

Claim doubled(ArmRunner& runner, const Arms& a) {
  Claim claim{.id = "002.5, trained",
              .statement = "The doubled projection can say no more, but training walks another way.",
              .original = "",
              .trained = true};
  claim.tables.push_back(arm_table(runner, {a.canonical, a.doubled}, "x W^Q W_i^Q beside x W_i^Q"));
  claim.plots.push_back(curve_plot(runner, {a.canonical, a.doubled}, "A matrix before each head's"));
  const Interval difference = difference_of(losses(runner.runs(a.doubled)), losses(runner.runs(a.canonical)));
  claim.measured = fmt::format("loss of doubled minus canonical {}", shown(difference));
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {
      {"002.2", [](const ArmRunner& r) { return std::vector{make(r).canonical}; },
       [](ArmRunner& r) { return ranks(r, make(r)); }},
      {"002.3", [](const ArmRunner&) { return std::vector<Arm>(); },
       [](ArmRunner& r) { return times(r, make(r)); }},
      {"002.4",
       [](const ArmRunner& r) {
         const Arms a = make(r);
         return std::vector{a.canonical, a.merged};
       },
       [](ArmRunner& r) { return merged(r, make(r)); }},
      {"002.5, trained",
       [](const ArmRunner& r) {
         const Arms a = make(r);
         return std::vector{a.canonical, a.doubled};
       },
       [](ArmRunner& r) { return doubled(r, make(r)); }},
  };
  return kChecks;
}

}  // namespace mh::two_matrices_or_one
