#include "multihead/folders/families/rope_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace mh {
namespace {

/// YaRN's 0.1 m ln(s) + 1, the root of what scores are multiplied with.
double yarn_amplitude(double factor, double scale = 1) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

/// The fields of one configuration, as transformers reads them (modeling_rope_utils.py).
class RopeReader {
 public:
  RopeReader(const RopeFields& rope, const RopeContext& context, std::vector<std::string>& wrong)
      : rope_(rope),
        context_(context),
        wrong_(wrong),
        type_(rope.kind ? *rope.kind : rope.older_kind.value_or(RopeType::kDefault)) {}

  RopePositions read(std::vector<std::string>& remarks) {
    const double share = rope_.rotated_share.value_or(context_.rotated_share);
    rotated_ = static_cast<int>(context_.d_head * share);
    RotaryOptions rotary{.base = rope_.base.value_or(context_.base), .rotated = share == 1 ? 0 : rotated_};
    if (share != 1 && (rotated_ < 2 || rotated_ % 2 != 0)) {
      wrong_.push_back(
          fmt::format("partial_rotary_factor is {}, so that {} of a head's {} numbers turn; expected an even "
                      "number of at least 2",
                      share, rotated_, context_.d_head));
    }
    RopePositions found{.rotary = std::move(rotary), .longest = context_.max_positions};
    RotaryScaling& scaling = found.rotary.scaling;
    switch (type_) {
      case RopeType::kDefault:
        break;
      case RopeType::kLinear:
        scaling.kind = RotaryScaling::Kind::kLinear;
        take(scaling.factor, rope_.factor, "factor");
        break;
      case RopeType::kLlama3:
        read_llama3(scaling);
        break;
      case RopeType::kYarn:
        read_yarn(scaling);
        break;
      case RopeType::kDynamic:  // longer texts alone turn more slowly
        break;
      case RopeType::kLongRope:
        read_longrope(found, remarks);
        break;
    }
    return found;
  }

 private:
  template <class T>
  bool need(const std::optional<T>& value, const char* field) {
    if (!value)
      wrong_.push_back(fmt::format("rope_type \"{}\" needs {}", name_of(type_, kRopeTypeNames), field));
    return value.has_value();
  }
  template <class T>
  void take(T& to, const std::optional<T>& value, const char* field) {
    if (need(value, field)) to = *value;
  }
  int32_t original_or(int32_t otherwise) const { return rope_.original_positions.value_or(otherwise); }

  void read_llama3(RotaryScaling& scaling) {
    scaling.kind = RotaryScaling::Kind::kLlama3;
    take(scaling.factor, rope_.factor, "factor");
    take(scaling.low_turns, rope_.low_turns, "low_freq_factor");
    take(scaling.high_turns, rope_.high_turns, "high_freq_factor");
    take(scaling.original_positions, rope_.original_positions, "original_max_position_embeddings");
    check_turns(scaling, "low_freq_factor", "high_freq_factor");
  }

  void read_yarn(RotaryScaling& scaling) {
    scaling.kind = RotaryScaling::Kind::kYarn;
    take(scaling.factor, rope_.factor, "factor");
    scaling.high_turns = rope_.many_turns.value_or(32);
    scaling.low_turns = rope_.few_turns.value_or(1);
    scaling.original_positions = original_or(context_.max_positions);
    scaling.whole_pairs = rope_.whole_pairs;
    const double own = rope_.amplitude_scale.value_or(0), of_all = rope_.amplitude_scale_of_all.value_or(0);
    scaling.amplitude = rope_.amplitude ? *rope_.amplitude
                        : own != 0 && of_all != 0
                            ? yarn_amplitude(scaling.factor, own) / yarn_amplitude(scaling.factor, of_all)
                            : yarn_amplitude(scaling.factor);
    check_turns(scaling, "beta_slow", "beta_fast");
  }

  /// Texts beyond the original positions turn by other factors from their first token on: a cache would be wrong.
  void read_longrope(RopePositions& found, std::vector<std::string>& remarks) {
    const int32_t original = original_or(context_.max_positions);
    RotaryScaling& scaling = found.rotary.scaling;
    scaling.kind = RotaryScaling::Kind::kFactors;
    if (need(rope_.short_factors, "short_factor")) found.rotary.factors = *rope_.short_factors;
    need(rope_.long_factors, "long_factor");
    check_factors(rope_.short_factors, "short_factor");
    check_factors(rope_.long_factors, "long_factor");
    const double factor = rope_.factor.value_or(static_cast<double>(context_.max_positions) / original);
    scaling.amplitude = rope_.amplitude ? *rope_.amplitude
                        : factor <= 1   ? 1
                                        : std::sqrt(1 + std::log(factor) / std::log(original));
    found.longest = std::min(context_.max_positions, original);
    if (found.longest == context_.max_positions) return;
    remarks.push_back(
        fmt::format("texts of more than {} tokens (original_max_position_embeddings) are not read, though "
                    "max_position_embeddings is {}: long_factor is not done",
                    found.longest, context_.max_positions));
  }

  void check_turns(const RotaryScaling& scaling, const char* low, const char* high) {
    if (scaling.low_turns < scaling.high_turns) return;
    wrong_.push_back(
        fmt::format("{} is {}; expected less than {}, {}", low, scaling.low_turns, high, scaling.high_turns));
  }
  void check_factors(const std::optional<std::vector<double>>& factors, const char* field) {
    if (!factors) return;
    if (factors->size() != static_cast<size_t>(rotated_ / 2))
      wrong_.push_back(
          fmt::format("{} has {} numbers; expected {}, one for each pair of a head's {} numbers that turn",
                      field, factors->size(), rotated_ / 2, rotated_));
    if (!std::all_of(factors->begin(), factors->end(), [](double f) { return f > 0 && std::isfinite(f); }))
      wrong_.push_back(fmt::format("{} has a number that is not above 0", field));
  }

  const RopeFields& rope_;
  const RopeContext& context_;
  std::vector<std::string>& wrong_;
  RopeType type_;
  int rotated_ = 0;
};

}  // namespace

void expect_equal(const RopeFields& rope, const RopeFields& older, std::vector<std::string>& wrong) {
  if (rope != older)
    wrong.emplace_back(
        "rope_parameters and rope_scaling differ; keep the one that the model was trained with");
}

RopePositions positions_of(RopeFields rope, const RopeContext& context, std::vector<std::string>& wrong,
                           std::vector<std::string>& remarks) {
  const auto inside =
      std::exchange(rope.original_positions,
                    context.original_positions ? context.original_positions : rope.original_positions);
  if (inside && *inside != *rope.original_positions) {
    wrong.push_back(fmt::format(
        "original_max_position_embeddings is {}, and {} inside of rope_parameters; keep the right one",
        *rope.original_positions, *inside));
  }
  const double share = rope.rotated_share.value_or(1) != 1 ? *rope.rotated_share : context.rotated_share;
  if (!context.all_turn || share == 1) return RopeReader(rope, context, wrong).read(remarks);
  wrong.push_back(fmt::format("partial_rotary_factor is {}; expected 1: all numbers of a head turn", share));
  return {.longest = context.max_positions};
}

}  // namespace mh
