#include "multihead/heads/retrieval/needle_watch.h"

#include <algorithm>

namespace mh {

NeedleWatch::NeedleWatch(const Model& model) {
  for (const Model::Attention& attention : model.attentions()) {
    first_of_.emplace(attention.name, heads_.size());
    for (int h = 0; h < attention.heads; ++h) heads_.push_back({attention.name, h});
  }
}

void NeedleWatch::begin(int32_t first, int32_t steps, int32_t place, std::span<const int32_t> tokens) {
  first_ = first;
  steps_ = steps;
  place_ = place;
  tokens_.assign(tokens.begin(), tokens.end());
  looks_.assign(heads_.size() * static_cast<size_t>(steps), {});
}

bool NeedleWatch::wants(const Site& site) const {
  return site.part == SitePart::kWeights && first_of_.contains(site.owner);
}

Var NeedleWatch::at(Tape&, const Site& site, const SiteValue& at) {
  const size_t head = first_of_.find(site.owner)->second + static_cast<size_t>(site.head);
  const ConstMatrixView weights = at.value.value();
  for (int32_t row = 0; row < weights.rows; ++row) {
    const int32_t step = at.rows.position(row, 0) - first_;
    if (step < 0 || step >= steps_) continue;
    const float* const of_row = weights.row(row);
    Look& look = looks_[head * static_cast<size_t>(steps_) + static_cast<size_t>(step)];
    look.key =
        static_cast<int32_t>(std::max_element(of_row, of_row + at.keys[static_cast<size_t>(row)]) - of_row);
    look.on_needle.assign(of_row + place_, of_row + place_ + std::ssize(tokens_));
  }
  return at.value;
}

bool NeedleWatch::copies(size_t head, int32_t step, int32_t token) const {
  const int32_t at = look(head, step).key - place_;
  return at >= 0 && at < std::ssize(tokens_) && tokens_[static_cast<size_t>(at)] == token;
}

double NeedleWatch::weight(size_t head, int32_t step, int32_t token) const {
  double sum = 0;
  const Look& here = look(head, step);
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i] == token) sum += static_cast<double>(here.on_needle[i]);
  }
  return sum;
}

}  // namespace mh
