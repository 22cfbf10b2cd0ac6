// LimitedHeads: heads that see the first keys of their sequence and a window of the last ones alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/nn/sites.h"

namespace mh {

/// The heads that are limited one after the other: each alone, or those that share keys together. patterns: whose heads; none: all. A
/// group of which one head is meant is limited as a whole. Throws UsageError on a pattern that fits no head.
std::vector<std::vector<HeadName>> limited_together(const Model& model,
                                                    const std::vector<HeadPattern>& patterns, bool by_group);

/// Its scores of all other keys become minus infinity before the softmax, which is the mask itself: weights that were made 0 after the
/// softmax could not be shared out again where all the others are 0 in float32. For tapes that do not record.
class LimitedHeads final : public Sites {
 public:
  /// sinks: first keys; window: last ones, the row's own among them, at least 1.
  LimitedHeads(const Model& model, const std::vector<HeadName>& heads, int32_t sinks, int32_t window);

  bool wants(const Site& site) const override;
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;
  bool changes() const override { return true; }

 private:
  std::map<std::string, std::set<int>, std::less<>>
      softmaxes_;  // of attentions; differential heads have two each
  int32_t sinks_, window_;
};

}  // namespace mh
