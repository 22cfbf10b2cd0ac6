#include "multihead/heads/contributions/head_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace mh {

HeadSources::HeadSources(const std::vector<Contribution*>& heads) : heads_(heads) {
  for (const Contribution* head : heads_) {
    values_.keep(fmt::format("{}.weights.{}", head->head->attention, head->head->head));
    values_.keep(head->head->attention + ".values");
    values_.keep(head->head->attention + ".gates");
  }
}

void HeadSources::put(const StreamParts& stream,
                      const std::function<void(const std::string&)>& remark) const {
  for (Contribution* head : heads_) {
    for (const StreamParts::Part& part : stream.parts()) {
      if (part.part != SitePart::kHeads || part.owner != head->head->attention) continue;
      if (put(*head, part)) continue;
      head->sources.clear();
      if (remark)
        remark(fmt::format(
            "{} does not give the sum of its weights times values, so that its part is not shown by token",
            head->name));
    }
  }
}

bool HeadSources::put(Contribution& head, const StreamParts::Part& part) const {
  const std::string& attention = head.head->attention;
  const int h = head.head->head;
  const ConstMatrixView weights = values_.value(fmt::format("{}.weights.{}", attention, h)).view();
  const ConstMatrixView values = values_.value(attention + ".values").view();
  const auto gate = static_cast<double>(values_.value(attention + ".gates").view()(0, h));
  const int64_t width = part.value.cols / part.blocks, from = h * width;
  // Grouped heads share the values of a group.
  const int64_t of_values = h * (values.cols / width) / part.blocks * width;
  head.sources.assign(static_cast<size_t>(values.rows), 0.0);
  double sum = 0, magnitude = 0;
  for (int64_t i = 0; i < part.gradient.rows; ++i) {
    const float* const g = part.gradient.row(i) + from;
    if (std::all_of(g, g + width, [](float one) { return one == 0; })) continue;
    for (int64_t j = 0; j < values.rows && j < weights.cols; ++j) {
      double along = 0;
      for (int64_t c = 0; c < width; ++c)
        along += static_cast<double>(values(j, of_values + c)) * static_cast<double>(g[c]);
      const double one = gate * static_cast<double>(weights(i, j)) * along;
      head.sources[static_cast<size_t>(j)] += one;
      sum += one;
      magnitude += std::abs(one);
    }
  }
  constexpr double kMostError = 1e-3;
  return std::abs(sum - head.sum) <= kMostError * std::max(magnitude, std::abs(head.sum));
}

}  // namespace mh
