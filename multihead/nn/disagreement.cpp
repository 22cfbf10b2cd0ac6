#include "multihead/nn/disagreement.h"

#include "multihead/autograd/disagreement.h"

namespace mh {

bool HeadSimilarities::wants(const Site& site) const {
  switch (site.part) {
    case SitePart::kValues:
      return form_.subspace;
    case SitePart::kWeights:
      return form_.positions;
    case SitePart::kHeads:
      return form_.positions || form_.output;
    case SitePart::kContribution:
    case SitePart::kAttentionOutput:
      return form_.written;
    default:
      return false;
  }
}

Var HeadSimilarities::at(Tape& tape, const Site& site, const SiteValue& at) {
  if (site.part == SitePart::kWeights) {
    weights_.push_back(at.value);
    return at.value;
  }
  if (site.part == SitePart::kContribution) {
    contributions_.push_back(at.value);
    return at.value;
  }
  if (site.part == SitePart::kAttentionOutput) {
    // Without W^O heads write to columns of their own, whose cosine is 0.
    if (!contributions_.empty()) add(row_similarity(tape, contributions_));
    contributions_.clear();
    return at.value;
  }
  if (site.part == SitePart::kHeads && form_.positions) {
    add(map_similarity(tape, weights_));
    weights_.clear();
  }
  if (site.part == SitePart::kValues || form_.output) add(row_similarity(tape, at.value, at.blocks));
  return at.value;
}

void HeadSimilarities::add(Var sum) {
  total_ += static_cast<double>(sum.value()(0, 0));
  ++count_;
  if (sum.wants_gradient()) sums_.push_back(sum);  // others do not outlive their layer
}

double HeadSimilarities::mean() const {
  return count_ == 0 ? 0 : total_ * form_.count() / static_cast<double>(count_);
}

void HeadSimilarities::seed(Tape& tape, double factor) const {
  if (count_ == 0) return;
  const auto each = static_cast<float>(factor * form_.count() / static_cast<double>(count_));
  for (const Var sum : sums_) tape.seed(sum, {&each, 1, 1});
}

}  // namespace mh
