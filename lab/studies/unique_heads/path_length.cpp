#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "lab/studies/unique_heads/algebra.h"

namespace mh::unique_heads {
namespace {

constexpr int kPositions = 17, kNumbers = 14;  // T, d

/// Positions that each row of the last of these layers depends on: where d(row i) / dx_j is not exactly 0.
/// Each layer has its residual. window 0: none.
std::vector<std::vector<bool>> reached(int window, int layers, const lab::Matrix& x, uint64_t seed) {
  std::vector<std::unique_ptr<lab::Layer>> stack;
  for (int l = 0; l < layers; ++l) {
    stack.push_back(std::make_unique<lab::Layer>(HeadGeometry{.heads = 2, .biases = Biases::kNone}, kNumbers,
                                                 seed + static_cast<uint64_t>(l)));
  }
  const Mask mask = window == 0 ? Mask::none() : Mask::window(window, window);
  std::vector<std::vector<bool>> all;
  for (int row = 0; row < kPositions; ++row) {
    const lab::Matrix gradient = lab::stack_gradient(stack, x, row, mask);
    std::vector<bool>& positions = all.emplace_back();
    for (int t = 0; t < kPositions; ++t)
      positions.push_back(lab::norm(lab::columns(lab::transposed(gradient), t, t + 1)) != 0);
  }
  return all;
}

/// Pairs of a row and a position, nearer than a limit or not.
struct Pairs {
  int near = 0, near_reached = 0, far = 0, far_reached = 0;
};
Pairs pairs_of(const std::vector<std::vector<bool>>& depends, int limit) {
  Pairs pairs;
  for (int row = 0; row < kPositions; ++row) {
    for (int t = 0; t < kPositions; ++t) {
      const bool is = depends[static_cast<size_t>(row)][static_cast<size_t>(t)];
      if (std::abs(row - t) <= limit) {
        ++pairs.near, pairs.near_reached += is;
      } else {
        ++pairs.far, pairs.far_reached += is;
      }
    }
  }
  return pairs;
}

}  // namespace

/// mistake 1: the layer has a window of 15 words; 2: one layer too many is expected; 3: one too few.
Claim path_length(const AlgebraCase& a) {
  Claim claim{
      .id = "003.7",
      .statement =
          "One layer of full attention relates any two positions; with a window of w words to either "
          "side it takes ceil(distance / w) layers.",
      .original_words =
          "\"In the Transformer this is reduced to a constant number of operations, albeit at the cost "
          "of reduced effective resolution\" (from Vaswani et al. 2017)."};
  Random random(a.seed, 37);
  const lab::Matrix x = lab::random_matrix(kPositions, kNumbers, random);
  const Pairs full = pairs_of(reached(a.mistake == 1 ? 15 : 0, 1, x, a.seed), kPositions);
  Table table{fmt::format("pairs of two positions out of {}: row i depends on position j", kPositions),
              {"window", "layers", "reach", "within, reached", "beyond, reached"},
              {}};
  table.rows.push_back({"none", "1", "all", fmt::format("{} of {}", full.near_reached, full.near), "0 of 0"});
  Pairs all;
  int stacks = 0;
  for (const int window : {1, 2, 3, 5}) {
    for (const int layers : {1, 2, 3}) {
      const int reach = window * (layers + (a.mistake == 2) - (a.mistake == 3));
      const Pairs pairs = pairs_of(reached(window, layers, x, a.seed), reach);
      all.near += pairs.near, all.near_reached += pairs.near_reached;
      all.far += pairs.far, all.far_reached += pairs.far_reached;
      ++stacks;
      table.rows.push_back({std::to_string(window), std::to_string(layers), std::to_string(reach),
                            fmt::format("{} of {}", pairs.near_reached, pairs.near),
                            fmt::format("{} of {}", pairs.far_reached, pairs.far)});
    }
  }
  claim.clauses = {
      algebraic("One layer of full attention relates any two positions.",
                fmt::format("dy_i/dx_j is not 0 for all {} pairs", full.near),
                fmt::format("not 0 for {} of {} pairs", full.near_reached, full.near),
                full.near_reached == full.near, OriginalSays::kSame),
      algebraic(
          "With a window of w words to either side, n layers relate every two positions at most n w apart, "
          "each of those between included.",
          fmt::format("dy_i/dx_j is not 0 for all {} such pairs in {} stacks", all.near, stacks),
          fmt::format("not 0 for {} of {} pairs", all.near_reached, all.near), all.near_reached == all.near),
      algebraic("With such a window n layers relate no two positions further apart than n w, so it takes "
                "ceil(distance / w) layers.",
                fmt::format("dy_i/dx_j is exactly 0 for all {} such pairs in {} stacks", all.far, stacks),
                fmt::format("not 0 for {} of {} pairs", all.far_reached, all.far), all.far_reached == 0)};
  claim.tables.push_back(std::move(table));
  return claim;
}

}  // namespace mh::unique_heads
