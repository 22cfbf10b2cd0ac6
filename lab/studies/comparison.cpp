#include "lab/studies/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lab/studies/equal_start.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"

namespace mh {
namespace {

/// The seeds of an arm that never left a plateau, to stand behind its name: their losses are more than 1 nat above the
/// median (the lower of two middle ones) of the arm. No seed is dropped.
std::string plateaus_text(const std::vector<ArmRun>& runs) {
  std::vector<double> sorted = losses(runs);
  std::ranges::sort(sorted);
  std::string text;
  for (const ArmRun& run : runs) {
    if (run.loss > sorted[(sorted.size() - 1) / 2] + 1)
      text += fmt::format(" (seed {} stayed at {:.2f})", run.seed, run.loss);
  }
  return text;
}

/// A number against updates, from point `first` of the curves on.
Series curve_of(const std::vector<ArmRun>& runs, std::string name, size_t first,
                const std::function<double(const CurvePoint&)>& number) {
  Series series{.name = std::move(name)};
  for (size_t i = first; i < runs[0].curve.size(); ++i) {
    add_point(series, static_cast<double>(runs[0].curve[i].update),
              of_runs(runs, [&](const ArmRun& run) { return number(run.curve[i]); }));
  }
  return series;
}

}  // namespace

std::vector<double> of_runs(const std::vector<ArmRun>& runs,
                            const std::function<double(const ArmRun&)>& number) {
  std::vector<double> numbers(runs.size());
  std::ranges::transform(runs, numbers.begin(), number);
  return numbers;
}

std::vector<double> losses(const std::vector<ArmRun>& runs) {
  return of_runs(runs, std::mem_fn(&ArmRun::loss));
}

std::vector<double> loss_difference(ArmRunner& runner, const Arm& a, const Arm& b) {
  return paired(losses(runner.runs(a)), losses(runner.runs(b)));
}

void fill_arms(Table& table, ArmRunner& runner, const std::vector<Arm>& arms) {
  const bool paper = runner.size() == StudySize::kPaper;
  table.columns = {"arm", "rate", "params", "loss", "minus first", paper ? "BLEU" : "exact %"};
  const auto score = [&](const ArmRun& run) { return paper ? run.bleu : 100 * run.exact; };
  for (const Arm& arm : arms) {
    const auto& runs = runner.runs(arm);
    table.rows.push_back(
        {arm.name + plateaus_text(runs), runner.rate_of(arm), std::to_string(runs[0].parameters),
         interval_text(losses(runs)),
         &arm == &arms.front() ? "" : interval_text(loss_difference(runner, arm, arms.front())),
         interval_text(of_runs(runs, score), 1)});
  }
}

TwoStarts two_starts(Arm arm) {
  TwoStarts both{arm, std::move(arm)};
  both.equal.start = Start::kEqualVariances;
  both.usual.start = Start::kUsual;
  both.usual.name += ", usual start";
  return both;
}

std::vector<Arm*> both(std::vector<TwoStarts>& arms, const std::vector<Arm*>& others) {
  std::vector<Arm*> all;
  for (TwoStarts& arm : arms) all.insert(all.end(), {&arm.equal, &arm.usual});
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

void fill_starts(Table& table, ArmRunner& runner, const Arm& base, const std::vector<TwoStarts>& arms) {
  table.columns = {"arm",  "params",      "equal start: rate", "loss", "minus first", "usual start: rate",
                   "loss", "minus first", "its scores, output"};
  const auto add = [&](const Arm& equal, const Arm& usual) {
    const bool first = &equal == &base;
    auto& row = table.rows.emplace_back();
    row = {equal.name + plateaus_text(runner.runs(equal)) + (first ? "" : plateaus_text(runner.runs(usual))),
           std::to_string(runner.runs(equal)[0].parameters)};
    for (const Arm* arm : {&equal, &usual}) {
      row.insert(row.end(), {runner.rate_of(*arm), interval_text(losses(runner.runs(*arm))),
                             first ? "" : interval_text(loss_difference(runner, *arm, base))});
    }
    const StartVariances start = start_variances(config_of(usual, 1), Start::kUsual, 1);
    row.push_back(fmt::format("{:.2f}, {:.2f}", start.scores, start.output));
  };
  add(base, base);
  for (const TwoStarts& arm : arms) add(arm.equal, arm.usual);
}

double share_of_updates(double quickest_seconds, double seconds) {
  const double share = quickest_seconds / seconds;
  return share > 0.95 ? 1 : std::max(0.05, std::round(20 * share) / 20);
}

std::vector<Arm> at_equal_time(ArmRunner& runner, std::vector<Arm> arms) {
  std::vector<double> seconds = runner.seconds_of_update(arms);
  for (size_t i = 0; i < arms.size(); ++i) seconds[i] *= arms[i].updates;  // arms may have unequal numbers
  const double quickest = std::ranges::min(seconds);
  for (size_t i = 0; i < arms.size(); ++i) {
    const double share = share_of_updates(quickest, seconds[i]);
    if (share == 1) continue;
    arms[i].updates *= share;
    arms[i].name += fmt::format(", {:.0f} % of the updates", 100 * share);
  }
  runner.prepare(arms);
  return arms;
}

void fill_equal_time(Table& table, ArmRunner& runner, const std::vector<Arm>& arms) {
  const std::vector<Arm> timed = at_equal_time(runner, arms);
  const std::vector<double> seconds = runner.seconds_of_update(arms);
  table.caption = "equal time, each with a schedule that ends then; times measured side by side";
  fill_arms(table, runner, timed);
  table.columns.insert(table.columns.end(), {"ms an update", "CPU s"});
  for (size_t i = 0; i < arms.size(); ++i) {
    const auto updates = static_cast<double>(runner.runs(timed[i])[0].updates);
    table.rows[i].insert(table.rows[i].end(), {fmt::format("{:.1f}", 1000 * seconds[i]),
                                               fmt::format("{:.1f}", seconds[i] * updates)});
  }
}

void add_point(Series& series, double x, const std::vector<double>& by_seed) {
  series.x.push_back(x);
  series.y.push_back(interval_of(by_seed).mean);
  series.lines.resize(by_seed.size());
  for (size_t seed = 0; seed < by_seed.size(); ++seed) series.lines[seed].push_back(by_seed[seed]);
}

Series telemetry_series(const std::vector<ArmRun>& runs, std::string name, double HeadTelemetry::*number) {
  return curve_of(runs, std::move(name), 0, [&](const CurvePoint& at) { return at.heads.*number; });
}

void fill_curves(Plot& plot, ArmRunner& runner, const std::vector<Arm>& arms) {
  plot.x_label = "update", plot.y_label = "validation loss a token";
  for (const Arm& arm : arms)
    plot.series.push_back(curve_of(runner.runs(arm), arm.name, 1, std::mem_fn(&CurvePoint::loss)));
}

void fill_losses(Plot& plot, ArmRunner& runner, const std::vector<Arm>& arms) {
  plot.x_label = "test loss a token: seeds, mean, 95 % interval";
  plot.y_label = "test loss a token, mean over seeds";
  plot.kind = PlotKind::kStrips;
  for (const Arm& arm : arms) plot.series.push_back({.name = arm.name, .y = losses(runner.runs(arm))});
}

int64_t parameters_of(const TranslatorShape& model) {
  return EncoderDecoder(model.config()).parameter_count();
}

TranslatorShape with_parameters(TranslatorShape model, int64_t parameters) {
  const int64_t layers = model.encoder_layers + model.decoder_layers;
  const int64_t of_unit = layers * (2 * int64_t{model.d_model} + 1);  // two matrices and a bias
  const auto more = static_cast<int32_t>(
      std::llround(static_cast<double>(parameters - parameters_of(model)) / static_cast<double>(of_unit)));
  for (int32_t* size : {&model.encoder_ff, &model.decoder_ff}) *size = std::max(1, *size + more);
  return model;
}

Arm as_large_as(Arm arm, const Arm& other) {
  const TranslatorShape fitted = with_parameters(config_of(arm, 1), parameters_of(config_of(other, 1)));
  arm.model.encoder_ff = fitted.encoder_ff;
  arm.model.decoder_ff = fitted.decoder_ff;
  return arm;
}

Arm enlarged(Arm arm, const Arm& other) {
  arm = as_large_as(std::move(arm), other);
  arm.name += ", larger d_ff";
  return arm;
}

double mebibytes_kept(ArmRunner& runner, const Arm& arm) {
  return static_cast<double>(runner.runs(arm)[0].activation_bytes) / (1 << 20);
}

Arm canonical_arm(const ArmRunner& runner) {
  return runner.base(fmt::format("canonical, {} heads", runner.settings().model.encoder_heads));
}

Arm sliced_arm(const ArmRunner& runner) {
  Arm arm = runner.base("sliced input");
  arm.model.geometry.input = HeadInput::slices();
  return arm;
}

Arm wide_arm(const ArmRunner& runner) {
  Arm arm = runner.base("wide, d_k = d");
  arm.model.geometry.d_key = arm.model.geometry.d_value = arm.model.d_model;
  return arm;
}

Arm with_heads(Arm arm, int heads) {
  arm.model.encoder_heads = arm.model.decoder_heads = heads;
  return arm;
}

}  // namespace mh
