// Regularisers that make the heads of a layer differ (Li et al. 2018): loss = NLL + (lambda / h^2) sum_ij
// similarity of heads i and j. The similarity is summed over rows, averaged over the attentions, and
// divided by the number of target tokens as the NLL is. The cosines of `subspace` and `output` compare coordinates in bases of
// each head's own: a rotation W_V R, R^T W_O changes them and no output, so they are penalties and no measures of heads. Those
// of `written` stay.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/nn/sites.h"

namespace mh {

/// Which similarities are penalised; several add up, as in Li et al.'s table of combinations.
struct Disagreement {
  bool subspace = false;   // cos(V_i, V_j): the values of a row
  bool positions = false;  // |A_i * A_j|: the weights of a query, by the composed path
  bool output = false;     // cos(Att_i, Att_j): the outputs before W^O
  bool written =
      false;  // cos(Att_i W_i^O, Att_j W_j^O): what heads add to the layer's output; not one of Li et al.'s

  constexpr bool any() const { return subspace || positions || output || written; }
  constexpr int count() const { return int{subspace} + int{positions} + int{output} + int{written}; }
  constexpr bool operator==(const Disagreement&) const = default;
};
template <>
inline constexpr bool kHasNames<Disagreement> = true;

inline constexpr EnumNames<Disagreement> kDisagreementNames = {
    {"none", {}},
    {"subspace", {.subspace = true}},
    {"positions", {.positions = true}},
    {"output", {.output = true}},
    {"subspace+positions", {.subspace = true, .positions = true}},
    {"subspace+output", {.subspace = true, .output = true}},
    {"positions+output", {.positions = true, .output = true}},
    {"all", {.subspace = true, .positions = true, .output = true}},
    {"written", {.written = true}}};

/// Reads values, weights, outputs and contributions, and adds for each attention and each similarity of `form` the sum over rows of
/// (1 / h^2) sum_ij.
class HeadSimilarities final : public Sites {
 public:
  explicit HeadSimilarities(Disagreement form) : form_(form) {}

  bool wants(const Site& site) const override;
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;

  /// Averaged over the attentions.
  double mean() const;
  /// Makes backward() start from `factor` times the mean, too.
  void seed(Tape& tape, double factor) const;

 private:
  void add(Var sum);

  Disagreement form_;
  std::vector<Var> weights_, contributions_;  // of the heads of the attention that runs
  std::vector<Var> sums_;                     // [1, 1] each
  double total_ = 0;
  int64_t count_ = 0;  // of sums
};

}  // namespace mh
