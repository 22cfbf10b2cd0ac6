// Compares arms: tables and plots of their losses, models of equal parameters, training for equal time, and each
// arm from both its starts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lab/studies/arms.h"
#include "lab/studies/statistics.h"
#include "multihead/models/translator_shape.h"

namespace mh {

/// "As good as": a loss of at most so many nats a token more or less, which is 5 % of perplexity.
inline constexpr double kMargin = 0.05;

std::vector<double> losses(const std::vector<ArmRun>& runs);
std::vector<double> of_runs(const std::vector<ArmRun>& runs,
                            const std::function<double(const ArmRun&)>& number);
/// loss(a) - loss(b), by seed.
std::vector<double> loss_difference(ArmRunner& runner, const Arm& a, const Arm& b);

/// Fills a table with one row for each arm: rate, parameters, test loss, its difference from the first arm's by seeds,
/// score (BLEU at the size of the paper, else exact matches in %). Names tell which seeds never left a plateau.
void fill_arms(Table& table, ArmRunner& runner, const std::vector<Arm>& arms);

/// An arm from both its starts.
struct TwoStarts {
  Arm equal;  // the scores and the output start with the variances of canonical heads
  Arm usual;  // as its geometry is usually initialised
};
TwoStarts two_starts(Arm arm);
/// Both arms of each and the others, for ArmRunner::tune().
std::vector<Arm*> both(std::vector<TwoStarts>& arms, const std::vector<Arm*>& others = {});
/// One row for each arm, the base first: test losses from both starts with their differences from the base, and the
/// variances with which scores and output usually start. The base, canonical, starts alike in both columns.
void fill_starts(Table& table, ArmRunner& runner, const Arm& base, const std::vector<TwoStarts>& arms);

/// The arms with as many updates as fit into the CPU time that the quickest of them takes, on a schedule of that
/// length. Those within 5 % of the quickest stay as they are; other shares are rounded to 5 %. They keep their
/// learning rates. The times are those of ArmRunner::seconds_of_update().
std::vector<Arm> at_equal_time(ArmRunner& runner, std::vector<Arm> arms);
/// As fill_arms(), of these arms at equal time, with the time of an update and of the whole training.
void fill_equal_time(Table& table, ArmRunner& runner, const std::vector<Arm>& arms);
/// The share of its updates that an arm has time for. REQUIRES: seconds > 0.
double share_of_updates(double quickest_seconds, double seconds);

/// Adds the point x to a line of a plot: the mean of the numbers, and each seed's to its thin line.
void add_point(Series& series, double x, const std::vector<double>& by_seed);
/// A number of the heads' telemetry against updates, from the start on.
Series telemetry_series(const std::vector<ArmRun>& runs, std::string name, double HeadTelemetry::*number);
/// Validation loss against updates: the mean over seeds, each seed a thin line.
void fill_curves(Plot& plot, ArmRunner& runner, const std::vector<Arm>& arms);
/// Test loss of each arm's seeds, one strip for each arm.
void fill_losses(Plot& plot, ArmRunner& runner, const std::vector<Arm>& arms);

int64_t parameters_of(const TranslatorShape& model);
/// The same model with d_ff as large or small as brings it nearest to that many parameters.
TranslatorShape with_parameters(TranslatorShape model, int64_t parameters);
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
