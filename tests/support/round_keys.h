// Rounds the keys and values of a decoder's attentions to bfloat16 as they are projected: what a cache that keeps bfloat16
// must give, in one that keeps float32.
#pragma once

#include "multihead/base/stored_matrix.h"
#include "multihead/nn/sites.h"

namespace mh::test {

class RoundKeys final : public Sites {
 public:
  bool wants(const Site& site) const override {
    return site.owner.starts_with("decoder") &&
           (site.part == SitePart::kKeys || site.part == SitePart::kValues);
  }
  Var at(Tape& tape, const Site&, const SiteValue& value) override {
    const ConstMatrixView from = value.value.value();
    const MatrixView to = tape.arena().matrix<float>(from.rows, from.cols);
    for (int64_t i = 0; i < from.rows; ++i) {
      for (int64_t c = 0; c < from.cols; ++c) to(i, c) = from_bfloat16(to_bfloat16(from(i, c)));
    }
    return tape.constant(to);
  }
  bool changes() const override { return true; }
};

}  // namespace mh::test
