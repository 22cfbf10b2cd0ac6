// Compares arms: tables and plots of their losses, differences by seed, models of equal parameters, losses after
// equal time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lab/studies/arms.h"
#include "lab/studies/statistics.h"

namespace mh {

std::vector<double> losses(const std::vector<ArmRun>& runs);
std::vector<double> of_runs(const std::vector<ArmRun>& runs,
                            const std::function<double(const ArmRun&)>& number);

/// One row for each arm: parameters, test loss, its difference from the first arm's by seeds, score, seconds.
Table arm_table(ArmRunner& runner, const std::vector<Arm>& arms, std::string caption);
/// What the arms' validation losses were when the quickest of them had ended, by seeds.
Table equal_time_table(ArmRunner& runner, const std::vector<Arm>& arms, std::string caption);
/// Validation loss against seconds, the mean over seeds.
Plot curve_plot(ArmRunner& runner, const std::vector<Arm>& arms, std::string title);
/// Test loss of each arm's seeds, one strip for each arm.
Plot loss_plot(ArmRunner& runner, const std::vector<Arm>& arms, std::string title);

int64_t parameters_of(const EncoderDecoderConfig& model);
/// The same model with d_ff as large or small as brings it nearest to that many parameters.
EncoderDecoderConfig with_parameters(EncoderDecoderConfig model, int64_t parameters);

/// An arm whose attentions have this geometry.
Arm with_geometry(Arm arm, const HeadGeometry& geometry);
/// h heads on both sides; d_key as the geometry says, d / h where it leaves it open.
Arm with_heads(Arm arm, int heads);

}  // namespace mh
