#include "multihead/nn/list_sites.h"

#include <algorithm>

#include "multihead/base/error.h"

namespace mh {
namespace {

std::vector<int64_t> offsets_of(std::span<const int64_t> lengths) {
  std::vector<int64_t> offsets{0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

int64_t most_of(std::span<const int64_t> lengths) {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

}  // namespace

ListOffsets ListOffsets::of_pairs(std::span<const int64_t> source_lengths,
                                  std::span<const int64_t> target_lengths) {
  ListOffsets all{.sources = offsets_of(source_lengths),
                  .each = offsets_of(std::vector<int64_t>(source_lengths.size(), 1)),
                  .most_sources = most_of(source_lengths),
                  .most_targets = most_of(target_lengths)};
  if (!target_lengths.empty()) all.targets = offsets_of(target_lengths);
  return all;
}

Var ListSites::at(Tape& tape, const Site& site, const SiteValue& value) {
  const ListPlaces* const inner = value.rows.list;  // of a list that is a part of this one
  const size_t sequences = value.rows.offsets.size() - 1;
  std::vector<int64_t> texts(sequences);
  for (size_t s = 0; s < sequences; ++s) {
    const int64_t number = inner != nullptr ? inner->texts[s] : static_cast<int64_t>(s);
    MH_ASSERT(number < std::ssize(batch_.texts));
    texts[s] = number < 0 ? -1 : batch_.texts[static_cast<size_t>(number)];
  }
  ListPlaces places{
      .texts = texts, .begins = inner != nullptr ? inner->begins : batch_.begins, .count = batch_.count};
  if (batch_.offsets != nullptr) {
    const SiteRows rows = rows_of(site);
    const ListOffsets& all = *batch_.offsets;
    if (rows == SiteRows::kOneEach) {
      places.offsets = all.each;
      places.longest = 1;
    } else {
      const bool of_sources = rows == SiteRows::kSource;
      places.offsets = of_sources ? all.sources : all.targets;
      places.longest = of_sources ? all.most_sources : all.most_targets;
    }
    places.most_keys = keys_of(site) == SiteRows::kTarget ? all.most_targets : all.most_sources;
  }
  SiteValue listed = value;
  listed.rows.list = &places;
  return caller_->at(tape, site, listed);
}

}  // namespace mh
