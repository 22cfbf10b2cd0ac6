#include "lab/studies/comparison.h"
#include "multihead/models/encoder_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace mh {
namespace {

double mean_of(const std::vector<ArmRun>& runs, const std::function<double(const ArmRun&)>& number) {
  return interval_of(of_runs(runs, number)).mean;
}

/// Validation loss after that much training, between the points of the curve.
double loss_at(const ArmRun& run, double seconds) {
  for (size_t i = 1; i < run.curve.size(); ++i) {
    const CurvePoint &a = run.curve[i - 1], &b = run.curve[i];
    if (seconds > b.seconds && i + 1 < run.curve.size()) continue;
    const double share =
        b.seconds > a.seconds ? std::clamp((seconds - a.seconds) / (b.seconds - a.seconds), 0.0, 1.0) : 1;
    return a.loss + share * (b.loss - a.loss);
  }
  return std::numeric_limits<double>::quiet_NaN();
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

Table arm_table(ArmRunner& runner, const std::vector<Arm>& arms, std::string caption) {
  const bool paper = runner.size() == StudySize::kPaper;
  Table table{std::move(caption),
              {"arm", "rate", "params", "loss", "minus first", paper ? "BLEU" : "exact %", "CPU s"},
              {}};
  for (const Arm& arm : arms) {
    const auto& runs = runner.runs(arm);
    const auto score = [&](const ArmRun& run) { return paper ? run.bleu : 100 * run.exact; };
    table.rows.push_back(
        {arm.name, runner.rate_of(arm), std::to_string(runs[0].parameters), shown(interval_of(losses(runs))),
         &arm == &arms.front() ? "" : shown(difference_of(losses(runs), losses(runner.runs(arms.front())))),
         fmt::format("{:.1f}", mean_of(runs, score)),
         fmt::format("{:.1f}", mean_of(runs, [](const ArmRun& run) { return run.seconds; }))});
  }
  return table;
}

Table equal_time_table(ArmRunner& runner, const std::vector<Arm>& arms, std::string caption) {
  Table table{std::move(caption), {"arm", "CPU ms an update", "validation loss then", "minus first"}, {}};
  std::vector<std::vector<double>> then;
  for (const Arm& arm : arms) {
    std::vector<double> numbers;
    for (size_t seed = 0; seed < runner.seeds().size(); ++seed) {
      double quickest = std::numeric_limits<double>::infinity();
      for (const Arm& other : arms) quickest = std::min(quickest, runner.runs(other)[seed].seconds);
      numbers.push_back(loss_at(runner.runs(arm)[seed], quickest));
    }
    then.push_back(numbers);
    const double update = mean_of(
        runner.runs(arm), [](const ArmRun& run) { return run.seconds / static_cast<double>(run.updates); });
    table.rows.push_back({arm.name, fmt::format("{:.2f}", 1e3 * update), shown(interval_of(numbers)),
                          &arm == &arms.front() ? "" : shown(difference_of(numbers, then.front()))});
  }
  return table;
}

Plot curve_plot(ArmRunner& runner, const std::vector<Arm>& arms, std::string title) {
  Plot plot{std::move(title), "update", "validation loss a token", false, {}};
  for (const Arm& arm : arms) {
    const auto& runs = runner.runs(arm);
    Series series{arm.name, {}, {}, {}, {}};
    for (size_t i = 1; i < runs[0].curve.size(); ++i) {
      const Interval at = interval_of(of_runs(runs, [&](const ArmRun& run) { return run.curve[i].loss; }));
      series.x.push_back(static_cast<double>(runs[0].curve[i].update));
      series.y.push_back(at.mean);
      if (runs.size() < 2) continue;
      series.low.push_back(at.low());
      series.high.push_back(at.high());
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

Plot loss_plot(ArmRunner& runner, const std::vector<Arm>& arms, std::string title) {
  Plot plot{std::move(title),
            "test loss a token: seeds, mean, 95 % interval",
            "test loss a token, mean over seeds",
            false,
            {},
            PlotKind::kStrips};
  for (const Arm& arm : arms)
    plot.series.push_back({.name = arm.name, .x = {}, .y = losses(runner.runs(arm)), .low = {}, .high = {}});
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

Arm with_geometry(Arm arm, const HeadGeometry& geometry) {
  arm.model.geometry = geometry;
  return arm;
}

Arm with_heads(Arm arm, int heads) {
  arm.model.encoder_heads = arm.model.decoder_heads = heads;
  return arm;
}

}  // namespace mh
