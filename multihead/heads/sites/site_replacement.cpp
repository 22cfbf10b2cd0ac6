#include "multihead/heads/sites/site_replacement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/autograd/replace.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"

namespace mh {
namespace {

/// A list that a batch has alone, in its order.
struct BatchAlone {
  BatchAlone(const RowPlaces& rows, bool one_each) : texts(rows.offsets.size() - 1) {
    std::iota(texts.begin(), texts.end(), 0);
    places.texts = texts;
    places.count = std::ssize(texts);
    if (one_each) {
      offsets.resize(rows.offsets.size());
      std::iota(offsets.begin(), offsets.end(), 0);
    } else if (rows.positions.empty()) {  // else other steps of cached decoding read other rows
      offsets.assign(rows.offsets.begin(), rows.offsets.end());
    }
    places.offsets = offsets;
    for (size_t s = 1; s < offsets.size(); ++s)
      places.longest = std::max(places.longest, offsets[s] - offsets[s - 1]);
  }

  std::vector<int64_t> texts, offsets;
  ListPlaces places;
};

/// The rows of the batch that a replacement means.
struct RowsMeant {
  std::vector<int32_t> rows = {};
  std::vector<int64_t> numbers =
      {};  // of each: which it is of all rows of the list that are meant (Meant::count())
};

class Meant {
 public:
  Meant(const SiteReplacement& wanted, std::string_view site, const ListPlaces& list)
      : wanted_(wanted), site_(site), list_(list) {}

  /// Throws UsageError on what the list does not have.
  void check() const {
    const std::optional<int32_t>&sequence = wanted_.sequence, &position = wanted_.position;
    if (sequence && list_.count && *sequence >= *list_.count)
      throw UsageError(fmt::format("site '{}': there is no sequence {}; there {}, numbered from 0", site_,
                                   *sequence, are(*list_.count)));
    if (!position || !known()) return;
    if (sequence && *position >= length(*sequence))
      throw UsageError(fmt::format("site '{}': sequence {} has no position {}; it has {}, numbered from 0",
                                   site_, *sequence, *position, length(*sequence)));
    if (!sequence && list_.longest > 0 && *position >= list_.longest)
      throw UsageError(
          fmt::format("site '{}': no sequence has a position {}; the longest has {}, numbered from 0", site_,
                      *position, list_.longest));
  }

  /// How many rows of the list are meant; none: that is not known yet.
  std::optional<int64_t> count() const {
    if (wanted_.sequence && wanted_.position) return 1;
    if (!known()) return std::nullopt;
    if (wanted_.sequence) return length(*wanted_.sequence);
    return wanted_.position ? texts_before().back() : list_.offsets.back();
  }

  RowsMeant rows(const RowPlaces& places, bool one_each) const {
    RowsMeant found;
    const bool counted = wanted_.numbers.rows() > 1 && known();  // else one row is for all
    const std::vector<int64_t> before_text =
        counted && wanted_.position && !wanted_.sequence ? texts_before() : std::vector<int64_t>();
    for (size_t s = 0; s + 1 < places.offsets.size(); ++s) {
      const int64_t text = list_.texts[s];
      if (wanted_.sequence && *wanted_.sequence != text) continue;
      const int32_t begin = places.offsets[s], before = list_.begins.empty() ? 0 : list_.begins[s];
      for (int32_t row = begin; row < places.offsets[s + 1]; ++row) {
        const int32_t position = one_each ? 0 : before + places.position(row, begin);
        if (wanted_.position && *wanted_.position != position) continue;
        found.rows.push_back(row);
        if (!counted) continue;
        found.numbers.push_back(!before_text.empty() ? before_text[static_cast<size_t>(text)]
                                : wanted_.sequence   ? position
                                                     : list_.offsets[static_cast<size_t>(text)] + position);
      }
    }
    return found;
  }

 private:
  static std::string are(int64_t count) {
    return count == 1 ? std::string("is 1") : fmt::format("are {}", count);
  }
  bool known() const { return !list_.offsets.empty(); }
  int64_t texts() const { return std::ssize(list_.offsets) - 1; }
  int64_t length(int64_t text) const {
    return list_.offsets[static_cast<size_t>(text) + 1] - list_.offsets[static_cast<size_t>(text)];
  }
  /// [texts + 1]: how many texts before each have the position.
  std::vector<int64_t> texts_before() const {
    std::vector<int64_t> before{0};
    for (int64_t t = 0; t < texts(); ++t)
      before.push_back(before.back() + (length(t) > *wanted_.position ? 1 : 0));
    return before;
  }

  const SiteReplacement& wanted_;
  const std::string_view site_;
  const ListPlaces& list_;
};

/// What the numbers are there to do.
const char* word_for(const SiteReplacement& wanted) {
  return wanted.change == SiteChange::kAdd ? "add" : "put";
}

/// The fewest and the most columns that numbers may have for these rows.
std::pair<int64_t, int64_t> columns_allowed(const SiteReplacement& wanted, const SiteValue& at,
                                            const RowsMeant& meant, const ListPlaces& list, int64_t columns) {
  if (at.keys.empty()) {
    const int64_t width = wanted.head ? columns / at.blocks : columns;
    return {width, width};
  }
  int64_t least = 0;  // columns behind the last key count for nothing
  for (const int32_t row : meant.rows) least = std::max<int64_t>(least, at.keys[static_cast<size_t>(row)]);
  return {least, std::max(columns, list.most_keys)};
}

}  // namespace

std::string SiteReplacement::in_words() const {
  std::string words = fmt::format("site '{}'", site);
  if (sequence) words += fmt::format(", sequence {}", *sequence);
  if (position) words += fmt::format(", position {}", *position);
  if (head) words += fmt::format(", head {}", *head);
  return words;
}

void check_replacement(const SiteReplacement& wanted) {
  for (const auto& [what, number] :
       {std::pair<const char*, std::optional<int32_t>>{"sequence", wanted.sequence},
        {"position", wanted.position},
        {"head", wanted.head}}) {
    if (number && *number < 0)
      throw UsageError(fmt::format("site '{}': there is no {} {}; {}s are numbered from 0", wanted.site, what,
                                   *number, what));
  }
  if (!std::isfinite(wanted.strength))
    throw UsageError(
        fmt::format("site '{}': the strength is {}; expected a finite number", wanted.site, wanted.strength));
  if (wanted.change == SiteChange::kReplace && wanted.strength != 1)
    throw UsageError(
        fmt::format("site '{}': numbers that are put there have no strength, but it is {}; leave it out, or "
                    "add the numbers",
                    wanted.site, wanted.strength));
  for (int64_t i = 0; i < wanted.numbers.rows(); ++i) {
    const ConstMatrixView row = wanted.numbers.view().rows_between(i, i + 1);
    if (!all_finite(row))
      throw UsageError(fmt::format("site '{}': row {} of the numbers to {} there has one that is not finite",
                                   wanted.site, i, word_for(wanted)));
    const float largest = std::accumulate(row.row(0), row.row(0) + row.cols, 0.0f,
                                          [](float most, float x) { return std::max(most, std::abs(x)); });
    if (!std::isfinite(largest * wanted.strength))
      throw UsageError(
          fmt::format("site '{}': {:g}, the strength, times {:g}, a number of row {}, is too large for "
                      "float32; give a smaller strength",
                      wanted.site, wanted.strength, largest, i));
  }
}

void check_replacement(const SiteReplacement& wanted, const SiteShape& site) {
  if (wanted.head && *wanted.head >= site.blocks)
    throw UsageError(fmt::format("site '{}': there is no head {}; it has {}, numbered from 0", site.name,
                                 *wanted.head, site.blocks));
  const int64_t width = wanted.head ? site.columns / site.blocks : site.columns;
  if (site.columns > 0 && wanted.numbers.cols() != width)
    throw ShapeError(fmt::format("site '{}': the numbers to {} there have {} columns, expected {}", site.name,
                                 word_for(wanted), wanted.numbers.cols(), width));
}

Var replaced(Tape& tape, const SiteReplacement& wanted, const Site& where, const SiteValue& at, Var value) {
  const std::string site = where.name();
  if (wanted.head && *wanted.head >= at.blocks)
    throw UsageError(fmt::format("site '{}': there is no head {}; it has {}, numbered from 0", site,
                                 *wanted.head, at.blocks));
  std::optional<BatchAlone> alone;
  const bool one_each = rows_of(where) == SiteRows::kOneEach;
  if (at.rows.list == nullptr) alone.emplace(at.rows, one_each);
  const ListPlaces& list = alone ? alone->places : *at.rows.list;
  const Meant meant(wanted, site, list);
  meant.check();
  const RowsMeant found = meant.rows(at.rows, one_each);
  const Tensor& numbers = wanted.numbers;
  const auto [least, most] = columns_allowed(wanted, at, found, list, value.cols());
  // A step of cached decoding that does not have the row has other keys, too.
  const bool fits_columns = found.rows.empty() || (numbers.cols() >= least && numbers.cols() <= most);
  const std::optional<int64_t> count =
      numbers.rows() == 1 && fits_columns ? std::optional<int64_t>(1) : meant.count();
  if ((!fits_columns || numbers.rows() != count) && (count || !found.rows.empty())) {
    const std::string rows = count ? fmt::format("[{},{}], or ", *count, most) : std::string();
    throw ShapeError(
        fmt::format("site '{}': the numbers to {} there are [{},{}], expected {}[1,{}] for all rows", site,
                    word_for(wanted), numbers.rows(), numbers.cols(), rows, most));
  }
  // With a strength of 0 everything stays on the path that it takes otherwise, and no bit changes.
  if (found.rows.empty() || wanted.strength == 0) return value;
  const int64_t columns = std::min(numbers.cols(), value.cols());
  const int64_t left = wanted.head ? *wanted.head * numbers.cols() : 0;
  const bool one_row = numbers.rows() == 1;
  const MatrixView taken = tape.arena().matrix<float>(one_row ? 1 : std::ssize(found.rows), columns);
  for (int64_t i = 0; i < taken.rows; ++i) {
    const float* const from = numbers.view().row(one_row ? 0 : found.numbers[static_cast<size_t>(i)]);
    std::transform(from, from + columns, taken.row(i), [&](float x) { return wanted.strength * x; });
  }
  const auto change = wanted.change == SiteChange::kAdd ? add_constants : replace;
  return change(tape, value, found.rows, left, taken);
}

}  // namespace mh
