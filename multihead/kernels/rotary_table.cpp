#include "multihead/kernels/rotary_table.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>
#include <tuple>
#include <vector>

namespace mh {
namespace {

/// How much of pair i's speed stays with kYarn; the rest is divided by the factor.
double yarn_share(int i, int rotated, double base, const RotaryScaling& scaling) {
  // The pair, in general between two, that turns so many times in the original positions.
  const auto pair_that_turns = [&](double turns) {
    return rotated * std::log(scaling.original_positions / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(base));
  };
  double first = pair_that_turns(scaling.high_turns), last = pair_that_turns(scaling.low_turns);
  if (scaling.whole_pairs) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0), last = std::min(last, rotated - 1.0);
  if (first == last) last += 0.001;  // as transformers avoids a division by 0
  return 1 - std::clamp((i - first) / (last - first), 0.0, 1.0);
}

}  // namespace

bool RotaryScaling::operator==(const RotaryScaling& other) const {
  const auto numbers = [](const RotaryScaling& s) {
    return std::tie(s.kind, s.factor, s.low_turns, s.high_turns, s.original_positions, s.whole_pairs,
                    s.amplitude);
  };
  return numbers(*this) == numbers(other) &&
         std::equal(factors.begin(), factors.end(), other.factors.begin(), other.factors.end());
}

double rotary_speed(int i, int rotated, double base, const RotaryScaling& scaling) {
  const double speed = std::pow(base, -2.0 * i / rotated);
  switch (scaling.kind) {
    case RotaryScaling::Kind::kNone:
      break;
    case RotaryScaling::Kind::kLinear:
      return speed / scaling.factor;
    case RotaryScaling::Kind::kLlama3: {
      const double turns = scaling.original_positions * speed / (2 * std::numbers::pi);
      const double share = std::clamp((turns - scaling.low_turns) / (scaling.high_turns - scaling.low_turns),
                                      0.0, 1.0);  // that stays
      return (1 - share) * speed / scaling.factor + share * speed;
    }
    case RotaryScaling::Kind::kYarn: {
      const double share = yarn_share(i, rotated, base, scaling);
      return (1 - share) * speed / scaling.factor + share * speed;
    }
    case RotaryScaling::Kind::kFactors:
      return speed / scaling.factors[static_cast<size_t>(i)];
  }
  return speed;
}

}  // namespace mh

namespace mh::detail {

RotaryTable::~RotaryTable() {
  for (const auto& block : blocks_) delete[] block.load(std::memory_order_relaxed);
}

void RotaryTable::prepare(int32_t position) {
  auto& place = blocks_[static_cast<size_t>(position / kBlock)];
  if (place.load(std::memory_order_acquire) != nullptr) return;
  const int half = rotated_ / 2;
  const int32_t first = position / kBlock * kBlock;
  auto block = std::make_unique<float[]>(static_cast<size_t>(kBlock) * static_cast<size_t>(rotated_));
  for (int i = 0; i < half; ++i) {
    // In double: at position 10^6 the angle itself needs 20 of a float's 24 bits.
    const double speed = rotary_speed(i, rotated_, base_, scaling_);
    for (int32_t p = 0; p < kBlock; ++p) {
      const double angle = (first + p) * speed;
      float* row = block.get() + int64_t{p} * rotated_;
      row[i] = static_cast<float>(scaling_.amplitude * std::cos(angle));
      row[half + i] = static_cast<float>(scaling_.amplitude * std::sin(angle));
    }
  }
  const float* nothing = nullptr;  // of two threads that made the same block, the first one's stays
  if (place.compare_exchange_strong(nothing, block.get(), std::memory_order_acq_rel)) block.release();
}

std::shared_ptr<RotaryTable> rotary_table(int rotated, double base, const RotaryScaling& scaling) {
  constexpr size_t kKept = 16;
  static std::mutex mutex;
  static std::vector<std::shared_ptr<RotaryTable>> tables;  // the one used last in front
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = std::find_if(tables.begin(), tables.end(),
                            [&](const auto& table) { return table->is_for(rotated, base, scaling); });
  if (found == tables.end()) {
    if (tables.size() == kKept) tables.pop_back();
    found = tables.insert(tables.end(), std::make_shared<RotaryTable>(rotated, base, scaling));
  }
  std::rotate(tables.begin(), found, found + 1);
  return tables.front();
}

}  // namespace mh::detail
