#include "lab/studies/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lab/studies/equal_start.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {
namespace {

bool is_paper(const ArmRunner& runner) {
  return runner.size() == StudySize::kPaper;
}

/// The seeds of an arm that never left a plateau, to stand behind its name.
std::string plateaus_text(ArmRunner& runner, const Arm& arm) {
  std::string text;
  for (const auto& [seed, loss] : plateaus(runner.runs(arm)))
    text += fmt::format(" (seed {} stayed at {:.2f})", seed, loss);
  return text;
}

std::string score_text(ArmRunner& runner, const std::vector<ArmRun>& runs) {
  return interval_text(
      interval_of(
          of_runs(runs, [&](const ArmRun& run) { return is_paper(runner) ? run.bleu : 100 * run.exact; })),
      1);
}

}  // namespace

std::vector<double> of_runs(const std::vector<ArmRun>& runs,
                            const std::function<double(const ArmRun&)>& number) {
  std::vector<double> numbers;
  for (const ArmRun& run : runs) numbers.push_back(number(run));
  return numbers;
}

std::vector<double> losses(const std::vector<ArmRun>& runs) {
  return of_runs(runs, [](const ArmRun& run) { return run.loss; });
}

std::vector<std::pair<uint64_t, double>> plateaus(const std::vector<ArmRun>& runs) {
  std::vector<double> sorted = losses(runs);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::pair<uint64_t, double>> found;
  for (const ArmRun& run : runs) {
    if (run.loss > sorted[(sorted.size() - 1) / 2] + 1) found.emplace_back(run.seed, run.loss);
  }
  return found;
}

std::vector<double> loss_difference(ArmRunner& runner, const Arm& a, const Arm& b) {
  return paired(losses(runner.runs(a)), losses(runner.runs(b)));
}

Table arm_table(ArmRunner& runner, const std::vector<Arm>& arms, std::string caption) {
  Table table{std::move(caption),
              {"arm", "rate", "params", "loss", "minus first", is_paper(runner) ? "BLEU" : "exact %"},
              {}};
  for (const Arm& arm : arms) {
    const auto& runs = runner.runs(arm);
    table.rows.push_back(
        {arm.name + plateaus_text(runner, arm), runner.rate_of(arm), std::to_string(runs[0].parameters),
         interval_text(interval_of(losses(runs))),
         &arm == &arms.front() ? "" : interval_text(interval_of(loss_difference(runner, arm, arms.front()))),
         score_text(runner, runs)});
  }
  return table;
}

TwoStarts two_starts(Arm arm) {
  TwoStarts both{arm, std::move(arm)};
  both.equal.start = Start::kEqualVariances;
  both.usual.start = Start::kUsual;
  both.usual.name += ", usual start";
  return both;
}

std::vector<Arm*> both(std::vector<TwoStarts>& arms) {
  std::vector<Arm*> all;
  for (TwoStarts& arm : arms) all.insert(all.end(), {&arm.equal, &arm.usual});
  return all;
}

Table starts_table(ArmRunner& runner, const Arm& base, const std::vector<TwoStarts>& arms,
                   std::string caption) {
  Table table{std::move(caption),
              {"arm", "params", "equal start: rate", "loss", "minus first", "usual start: rate", "loss",
               "minus first", "its scores, output"},
              {}};
  const auto add = [&](const Arm& equal, const Arm& usual, bool first) {
    const auto cells = [&](const Arm& arm) {
      return std::vector<std::string>{
          runner.rate_of(arm), interval_text(interval_of(losses(runner.runs(arm)))),
          first ? "" : interval_text(interval_of(loss_difference(runner, arm, base)))};
    };
    const StartVariances start = start_variances(config_of(usual, 1), Start::kUsual, 1);
    std::vector<std::string> row = {
        equal.name + plateaus_text(runner, equal) + (first ? "" : plateaus_text(runner, usual)),
        std::to_string(runner.runs(equal)[0].parameters)};
    for (const Arm* arm : {&equal, &usual}) {
      for (std::string& cell : cells(*arm)) row.push_back(std::move(cell));
    }
    row.push_back(fmt::format("{:.2f}, {:.2f}", start.scores, start.output));
    table.rows.push_back(std::move(row));
  };
  add(base, base, true);
  for (const TwoStarts& arm : arms) add(arm.equal, arm.usual, false);
  return table;
}

double share_of_updates(double quickest_seconds, double seconds) {
  const double share = quickest_seconds / seconds;
  return share > 0.95 ? 1 : std::max(0.05, std::round(20 * share) / 20);
}

namespace {

/// Of all its updates: arms may have unequal numbers of them.
std::vector<double> seconds_of_training(ArmRunner& runner, const std::vector<Arm>& arms) {
  std::vector<double> seconds = runner.seconds_of_update(arms);
  for (size_t i = 0; i < arms.size(); ++i) seconds[i] *= arms[i].updates;
  return seconds;
}

}  // namespace

std::vector<Arm> at_equal_time(ArmRunner& runner, std::vector<Arm> arms) {
  const std::vector<double> seconds = seconds_of_training(runner, arms);
  const double quickest = *std::min_element(seconds.begin(), seconds.end());
  for (size_t i = 0; i < arms.size(); ++i) {
    const double share = share_of_updates(quickest, seconds[i]);
    if (share == 1) continue;
    arms[i].updates *= share;
    arms[i].name += fmt::format(", {:.0f} % of the updates", 100 * share);
  }
  runner.prepare(arms);
  return arms;
}

Table equal_time_table(ArmRunner& runner, const std::vector<Arm>& arms) {
  const std::vector<Arm> timed = at_equal_time(runner, arms);
  const std::vector<double> seconds = runner.seconds_of_update(arms);
  Table table = arm_table(runner, timed,
                          "equal time, each with a schedule that ends then; times measured side by side");
  table.columns.insert(table.columns.end(), {"ms an update", "CPU s"});
  for (size_t i = 0; i < arms.size(); ++i) {
    const auto updates = static_cast<double>(runner.runs(timed[i])[0].updates);
    table.rows[i].push_back(fmt::format("{:.1f}", 1000 * seconds[i]));
    table.rows[i].push_back(fmt::format("{:.1f}", seconds[i] * updates));
  }
  return table;
}

void add_point(Series& series, double x, const std::vector<double>& by_seed) {
  series.x.push_back(x);
  series.y.push_back(interval_of(by_seed).mean);
  series.lines.resize(by_seed.size());
  for (size_t seed = 0; seed < by_seed.size(); ++seed) series.lines[seed].push_back(by_seed[seed]);
}

Series telemetry_series(const std::vector<ArmRun>& runs, std::string name, double HeadTelemetry::*number) {
  Series series{.name = std::move(name)};
  for (size_t i = 0; i < runs[0].curve.size(); ++i) {
    add_point(series, static_cast<double>(runs[0].curve[i].update),
              of_runs(runs, [i, number](const ArmRun& run) { return run.curve[i].heads.*number; }));
  }
  return series;
}

Plot curve_plot(ArmRunner& runner, const std::vector<Arm>& arms, std::string title) {
  Plot plot{.title = std::move(title), .x_label = "update", .y_label = "validation loss a token"};
  for (const Arm& arm : arms) {
    const auto& runs = runner.runs(arm);
    Series series{.name = arm.name};
    for (size_t i = 1; i < runs[0].curve.size(); ++i) {
      add_point(series, static_cast<double>(runs[0].curve[i].update),
                of_runs(runs, [i](const ArmRun& run) { return run.curve[i].loss; }));
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

Plot loss_plot(ArmRunner& runner, const std::vector<Arm>& arms, std::string title) {
  Plot plot{.title = std::move(title),
            .x_label = "test loss a token: seeds, mean, 95 % interval",
            .y_label = "test loss a token, mean over seeds",
            .kind = PlotKind::kStrips};
  for (const Arm& arm : arms) plot.series.push_back({.name = arm.name, .y = losses(runner.runs(arm))});
  return plot;
}

int64_t parameters_of(const EncoderDecoderConfig& model) {
  return EncoderDecoder(model).parameter_count();
}

EncoderDecoderConfig with_parameters(EncoderDecoderConfig model, int64_t parameters) {
  const int64_t layers = model.encoder_layers + model.decoder_layers;
  const int64_t of_unit = layers * (2 * int64_t{model.d_model} + 1);  // two matrices and a bias
  const auto more = static_cast<int32_t>(
      std::llround(static_cast<double>(parameters - parameters_of(model)) / static_cast<double>(of_unit)));
  model.encoder_ff = std::max(1, model.encoder_ff + more);
  model.decoder_ff = std::max(1, model.decoder_ff + more);
  return model;
}

Arm as_large_as(Arm arm, const Arm& other) {
  const EncoderDecoderConfig fitted = with_parameters(config_of(arm, 1), parameters_of(config_of(other, 1)));
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
