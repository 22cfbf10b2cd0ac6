// 001: diverse heads.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lab/studies/study.h"

namespace mh {
struct ArmRun;
struct HeadTelemetry;
}  // namespace mh

namespace mh::diversity {

std::span<const AlgebraCheck> algebra();
/// 001.1 to 001.5, and 001.8 to 001.10.
std::span<const TrainedCheck> trained();

// Those that are files of their own:
Claim starts_trained(ArmRunner& runner);   // 001.2
Claim segments(ArmRunner& runner);         // 001.4
Claim escape(ArmRunner& runner);           // 001.8
Claim likeness(ArmRunner& runner);         // 001.9, of 001.8's random models
Claim written_penalty(ArmRunner& runner);  // 001.10, beside them
/// 001.7: which matrix holds the heads' weights, and how the heads are merged.
Claim merging(const AlgebraCase& a);

inline constexpr const char* kProjections[] = {"w_q", "w_k", "w_v"};

using HeadNumber = std::function<double(const HeadTelemetry&)>;
/// A number of the heads at point i of the curve, by seed; kEnd: at its last.
inline constexpr size_t kEnd = static_cast<size_t>(-1);
std::vector<double> heads_at(const std::vector<ArmRun>& runs, size_t i, const HeadNumber& number);
/// A row of a table: these with their 95 % intervals.
std::vector<std::string> heads_row(std::string name, const std::vector<ArmRun>& runs, size_t i,
                                   const std::vector<HeadNumber>& numbers);

}  // namespace mh::diversity
