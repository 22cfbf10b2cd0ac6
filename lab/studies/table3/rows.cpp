#include "lab/studies/table3/rows.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <utility>

#include "lab/studies/comparison.h"
#include "multihead/models/translator_shape.h"

namespace mh::table3 {
namespace {

constexpr double kRounding = 1e-9;  // 25.7 - 25.8 is not -0.1

}  // namespace

std::vector<Row> rows(const ArmRunner& runner) {
  TranslatorShape base = runner.settings().model;
  base.encoder_layers = base.decoder_layers = 3;
  base.encoder_heads = base.decoder_heads = 8;
  const int d = base.d_model, ff = base.encoder_ff, key = d / base.encoder_heads;
  std::vector<Row> all;
  const auto add = [&](const std::string& name, Published paper, const std::function<void(Arm&)>& change) {
    Arm arm = runner.base(name);
    arm.model = base;
    arm.label_smoothing = 0.1f;  // the paper's
    change(arm);
    all.push_back({std::move(arm), paper, {}});
  };
  const auto heads = [](int h) {
    return [h](Arm& arm) { arm.model.encoder_heads = arm.model.decoder_heads = h; };
  };
  const auto layers = [](int n) {
    return [n](Arm& arm) { arm.model.encoder_layers = arm.model.decoder_layers = n; };
  };
  const auto feed_forward = [](int size) {
    return [size](Arm& arm) { arm.model.encoder_ff = arm.model.decoder_ff = size; };
  };
  add("base", kPublishedBase, [](Arm&) {});
  add("(A) h=1", {"h=1", 5.29, 24.9}, heads(1));
  add("(A) h=4", {"h=4", 5.00, 25.5}, heads(4));
  add("(A) h=16", {"h=16", 4.91, 25.8}, heads(16));
  add("(A) h=32", {"h=32", 5.01, 25.4}, heads(32));
  for (const auto& [part, paper] :
       {std::pair(4, Published{"d_k=16", 5.16, 25.1}), std::pair(2, Published{"d_k=32", 5.01, 25.4})}) {
    add(fmt::format("(B) d_k={}", key / part), paper, [&, part = part](Arm& arm) {
      arm.model.geometry.d_key = key / part;
      arm.model.geometry.d_value = key;
    });
    all.back().usual = two_starts(all.back().arm).usual;
    all.back().arm.start = Start::kEqualVariances;
  }
  add("(C) N=1", {"N=2", 6.11, 23.7}, layers(1));
  add("(C) N=2", {"N=4", 5.19, 25.3}, layers(2));
  add("(C) N=4", {"N=8", 4.88, 25.5}, layers(4));
  add(fmt::format("(C) d={}", d / 2), {"d=256", 5.75, 24.5}, [](Arm& arm) { arm.model.d_model /= 2; });
  add(fmt::format("(C) d={}", d * 2), {"d=1024", 4.66, 26.0}, [](Arm& arm) { arm.model.d_model *= 2; });
  add(fmt::format("(C) d_ff={}", ff / 2), {"d_ff=1024", 5.12, 25.4}, feed_forward(ff / 2));
  add(fmt::format("(C) d_ff={}", ff * 2), {"d_ff=4096", 4.75, 26.2}, feed_forward(ff * 2));
  add("(D) smoothing 0", {"smoothing 0", 4.67, 25.3}, [](Arm& arm) { arm.label_smoothing = 0; });
  add("(D) smoothing 0.2", {"smoothing 0.2", 5.47, 25.7}, [](Arm& arm) { arm.label_smoothing = 0.2f; });
  add("(D) dropout 0", {"dropout 0", 5.77, 24.6}, [](Arm& arm) { arm.model.dropout.residual = 0; });
  add("(D) dropout 0.2", {"dropout 0.2", 4.95, 25.5}, [](Arm& arm) { arm.model.dropout.residual = 0.2f; });
  if (runner.size() != StudySize::kPaper) return all;
  add("(E) learned positions", {"learned positions", 4.92, 25.7},
      [](Arm& arm) { arm.model.positions = Positions::kLearned; });
  add(fmt::format("big: d={}, h=16, d_ff={}, dropout 0.3", d * 2, ff * 2), {"big", 4.33, 26.4}, [](Arm& arm) {
    TranslatorShape& m = arm.model;
    m.d_model *= 2, m.encoder_heads *= 2, m.decoder_heads *= 2;
    m.encoder_ff = m.decoder_ff = m.encoder_ff * 2;
    m.dropout.residual = 0.3f;
  });
  return all;
}

Agreement agreement(const std::vector<Differences>& rows, double least) {
  Agreement found;
  for (const Differences& row : rows) {
    const Interval here = interval_of(row.here);
    if (std::abs(row.paper) <= least + kRounding || (here.low() <= 0 && here.high() >= 0)) continue;
    ++found.clear;
    found.agree += (here.mean > 0) == (row.paper > 0);
  }
  // The tails of a binomial with p = 1/2.
  double upper = 0, lower = 0, ways = std::pow(0.5, found.clear);  // C(n, k) / 2^n, from k = 0 on
  for (int k = 0; k <= found.clear; ++k) {
    if (k >= found.agree) upper += ways;
    if (k <= found.agree) lower += ways;
    ways *= static_cast<double>(found.clear - k) / (k + 1);
  }
  found.chance = std::min(1.0, upper);
  found.chance_of_fewer = std::min(1.0, lower);
  return found;
}

}  // namespace mh::table3
