// Compares arms: tables and plots of their losses, models of equal parameters, training for equal time, and each
// arm from both its starts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lab/studies/arms.h"
#include "lab/studies/statistics.h"

namespace mh {

/// "As good as": a loss of at most so many nats a token more or less, which is 5 % of perplexity.
inline constexpr double kMargin = 0.05;

std::vector<double> losses(const std::vector<ArmRun>& runs);
std::vector<double> of_runs(const std::vector<ArmRun>& runs,
                            const std::function<double(const ArmRun&)>& number);
/// The seeds that never left a plateau, with their losses: more than 1 nat above the median (the lower of two middle
/// ones) of the arm. Tables name them; no seed is dropped.
std::vector<std::pair<uint64_t, double>> plateaus(const std::vector<ArmRun>& runs);
/// loss(a) - loss(b), by seed.
std::vector<double> loss_difference(ArmRunner& runner, const Arm& a, const Arm& b);

/// One row for each arm: rate, parameters, test loss, its difference from the first arm's by seeds, score (BLEU at
/// the size of the paper, else exact matches in %).
Table arm_table(ArmRunner& runner, const std::vector<Arm>& arms, std::string caption);

/// An arm from both its starts.
struct TwoStarts {
  Arm equal;  // the scores and the output start with the variances of canonical heads
  Arm usual;  // as its geometry is usually initialised
};
TwoStarts two_starts(Arm arm);
/// Both arms of each, for ArmRunner::tune().
std::vector<Arm*> both(std::vector<TwoStarts>& arms);
/// One row for each arm, the base first: test losses from both starts with their differences from the base, and the
/// variances with which scores and output usually start. The base, canonical, starts alike in both columns.
Table starts_table(ArmRunner& runner, const Arm& base, const std::vector<TwoStarts>& arms,
                   std::string caption);

/// The arms with as many updates as fit into the CPU time that the quickest of them takes, on a schedule of that
/// length. Those within 5 % of the quickest stay as they are; other shares are rounded to 5 %. They keep their
/// learning rates. The times are those of ArmRunner::seconds_of_update().
std::vector<Arm> at_equal_time(ArmRunner& runner, std::vector<Arm> arms);
/// arm_table() of these arms at equal time, with the time of an update and of the whole training.
Table equal_time_table(ArmRunner& runner, const std::vector<Arm>& arms);
/// The share of its updates that an arm has time for. REQUIRES: seconds > 0.
double share_of_updates(double quickest_seconds, double seconds);

/// Adds the point x to a line of a plot: the mean of the numbers, and each seed's to its thin line.
void add_point(Series& series, double x, const std::vector<double>& by_seed);
/// A number of the heads' telemetry against updates, from the start on.
Series telemetry_series(const std::vector<ArmRun>& runs, std::string name, double HeadTelemetry::*number);
/// Validation loss against updates: the mean over seeds, each seed a thin line.
Plot curve_plot(ArmRunner& runner, const std::vector<Arm>& arms, std::string title);
/// Test loss of each arm's seeds, one strip for each arm.
Plot loss_plot(ArmRunner& runner, const std::vector<Arm>& arms, std::string title);

int64_t parameters_of(const EncoderDecoderConfig& model);
/// The same model with d_ff as large or small as brings it nearest to that many parameters.
EncoderDecoderConfig with_parameters(EncoderDecoderConfig model, int64_t parameters);
/// The arm with as many parameters as `other` has, by d_ff.
Arm as_large_as(Arm arm, const Arm& other);
/// The same, named for it: "canonical, 4 heads, larger d_ff".
Arm enlarged(Arm arm, const Arm& other);
/// What a batch keeps for the backward pass.
double mebibytes_kept(ArmRunner& runner, const Arm& arm);

/// "canonical, 4 heads": the arm that the others differ from.
Arm canonical_arm(const ArmRunner& runner);
/// Heads that read a slice of the row each, and heads of full size, d_k = d.
Arm sliced_arm(const ArmRunner& runner);
Arm wide_arm(const ArmRunner& runner);
/// h heads on both sides; d_key as the geometry says, d / h where it leaves it open.
Arm with_heads(Arm arm, int heads);

}  // namespace mh
