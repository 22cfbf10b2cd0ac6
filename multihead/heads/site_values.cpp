#include "multihead/heads/site_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "multihead/autograd/replace.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/nn/head_name.h"

namespace mh {
namespace {

bool any_fits(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return fits(name, pattern); });
}

/// The rows of a value that a replacement means.
std::vector<int32_t> rows_meant(const SiteReplacement& wanted, const RowPlaces& places) {
  const auto sequences = static_cast<int32_t>(places.offsets.size()) - 1;
  if (wanted.sequence && (*wanted.sequence < 0 || *wanted.sequence >= sequences)) {
    throw UsageError(fmt::format("site '{}': there is no sequence {}; the batch has {}, numbered from 0",
                                 wanted.site, *wanted.sequence, sequences));
  }
  const int32_t first = wanted.sequence.value_or(0), last = wanted.sequence.value_or(sequences - 1);
  std::vector<int32_t> rows;
  for (int32_t s = first; s <= last; ++s) {
    const int32_t begin = places.offsets[static_cast<size_t>(s)],
                  end = places.offsets[static_cast<size_t>(s) + 1];
    for (int32_t row = begin; row < end; ++row) {
      if (!wanted.position || *wanted.position == places.position(row, begin)) rows.push_back(row);
    }
    // In cached decoding the position may have been read before, or be still to come.
    if (wanted.sequence && wanted.position && places.positions.empty() && rows.empty()) {
      throw UsageError(fmt::format("site '{}': sequence {} has no position {}; it has {}, numbered from 0",
                                   wanted.site, s, *wanted.position, end - begin));
    }
  }
  return rows;
}

Var replaced(Tape& tape, const SiteReplacement& wanted, const SiteValue& at, Var value) {
  const std::vector<int32_t> rows = rows_meant(wanted, at.rows);
  if (rows.empty() && !at.rows.positions.empty()) return value;  // another step reads them
  const int64_t width = wanted.head ? value.cols() / at.blocks : value.cols();
  if (wanted.head && *wanted.head >= at.blocks) {
    throw UsageError(fmt::format("site '{}': there is no head {}; it has {}, numbered from 0", wanted.site,
                                 *wanted.head, at.blocks));
  }
  const Tensor& numbers = wanted.numbers;
  const auto count = static_cast<int64_t>(rows.size());
  if (numbers.cols() != width || (numbers.rows() != 1 && numbers.rows() != count)) {
    throw ShapeError(fmt::format(
        "site '{}': the numbers to put there are [{},{}], expected [{},{}], or [1,{}] for all rows",
        wanted.site, numbers.rows(), numbers.cols(), count, width, width));
  }
  if (rows.empty()) return value;
  return replace(tape, value, rows, wanted.head.value_or(0) * width, numbers.view());
}

/// The key nearest to `key` that the row may see, of two the earlier one; -1 when it may see none.
int64_t nearest_visible(const SiteValue& at, int32_t row, int64_t key) {
  int64_t nearest = -1;
  at.for_visible_keys(row, [&](int64_t j) {
    if (nearest < 0 || std::abs(j - key) < std::abs(nearest - key)) nearest = j;
  });
  return nearest;
}

/// 1 / n for each of the n keys that the row may see.
void put_uniform(const SiteValue& at, int32_t row, float* weights) {
  int64_t visible = 0;
  at.for_visible_keys(row, [&](int64_t) { ++visible; });
  at.for_visible_keys(row, [&](int64_t j) { weights[j] = 1 / static_cast<float>(visible); });
}

/// The weights of a head by a rule, [Nq, longest keys].
Var weights_by(Tape& tape, WeightRule rule, const SiteValue& at) {
  const MatrixView weights = tape.arena().matrix<float>(at.value.rows(), at.value.cols());
  std::fill_n(weights.data, weights.size(), 0.0f);
  for (size_t s = 0; s + 1 < at.rows.offsets.size(); ++s) {
    const int32_t begin = at.rows.offsets[s];
    for (int32_t row = begin; row < at.rows.offsets[s + 1]; ++row) {
      if (rule == WeightRule::kUniform) {
        put_uniform(at, row, weights.row(row));
        continue;
      }
      const int64_t wanted = rule == WeightRule::kPrevious ? int64_t{at.rows.position(row, begin)} - 1 : 0;
      if (const int64_t key = nearest_visible(at, row, wanted); key >= 0) weights(row, key) = 1;
    }
  }
  return tape.constant(weights);
}

}  // namespace

void SiteValues::replace(SiteReplacement replacement) {
  if (replacement.head && *replacement.head < 0)
    throw UsageError(fmt::format("site '{}': there is no head {}; heads are numbered from 0",
                                 replacement.site, *replacement.head));
  require_finite(replacement.numbers.view(),
                 fmt::format("the numbers to put at site '{}'", replacement.site));
  replacements_.push_back(std::move(replacement));
}

void SiteValues::set_gate(std::string_view heads, float gate) {
  if (!std::isfinite(gate))
    throw UsageError(fmt::format("head '{}': its gate is {}; expected a finite number", heads, gate));
  std::erase_if(gates_, [&](const Gate& other) { return other.heads.text() == heads; });
  gates_.push_back({HeadPattern(heads), gate});
}

void SiteValues::replace_weights(std::string_view heads, WeightRule rule) {
  std::erase_if(rules_, [&](const RuledHeads& other) { return other.heads.text() == heads; });
  rules_.push_back({HeadPattern(heads), rule});
}

std::optional<WeightRule> SiteValues::rule_of(const Site& site) const {
  if (site.part != SitePart::kWeights) return std::nullopt;
  const auto last = std::find_if(rules_.rbegin(), rules_.rend(), [&](const RuledHeads& ruled) {
    return ruled.heads.matches(site.owner, site.head);
  });
  return last != rules_.rend() ? std::optional(last->rule) : std::nullopt;
}

ConstMatrixView KeptValue::sequence(int s) const {
  if (s < 0 || s + 1 >= static_cast<int>(offsets.size())) {
    throw UsageError(
        fmt::format("there is no sequence {}; the value has {}, numbered from 0", s, offsets.size() - 1));
  }
  const int32_t begin = offsets[static_cast<size_t>(s)], end = offsets[static_cast<size_t>(s) + 1];
  const ConstMatrixView rows = value.view().rows_between(begin, end);
  return keys.empty() || begin == end ? rows : rows.columns_between(0, keys[static_cast<size_t>(begin)]);
}

const KeptValue& SiteValues::kept(std::string_view site) const {
  const auto found = kept_.find(site);
  if (found != kept_.end()) return found->second;
  throw UsageError(fmt::format("site '{}' has no value; keep it, and run a model that has it", site));
}

ConstMatrixView SiteValues::gradient(std::string_view site) const {
  const auto found = watched_.find(site);
  if (found != watched_.end()) return found->second.gradient;
  throw UsageError(fmt::format("site '{}' has no gradient; watch it, and run a model that has it", site));
}

bool SiteValues::wants(const Site& site) const {
  const std::string name = site.name();
  if (site.part == SitePart::kGates && std::any_of(gates_.begin(), gates_.end(), [&](const Gate& gate) {
        return !gate.heads.one() || gate.heads.one()->attention == site.owner;
      }))
    return true;
  return rule_of(site) || any_fits(kept_patterns_, name) || any_fits(watched_patterns_, name) ||
         std::any_of(replacements_.begin(), replacements_.end(),
                     [&](const SiteReplacement& one) { return one.site == name; });
}

Var SiteValues::at(Tape& tape, const Site& site, const SiteValue& at) {
  const std::string name = site.name();
  Var value = site.part == SitePart::kGates ? gated(tape, site, at) : at.value;
  if (const auto rule = rule_of(site)) value = weights_by(tape, *rule, at);
  for (const SiteReplacement& one : replacements_) {
    if (one.site == name) value = replaced(tape, one, at, value);
  }
  if (any_fits(watched_patterns_, name)) {
    const Tape::Watched watched = tape.watch(value);
    const std::lock_guard lock(*mutex_);
    watched_.insert_or_assign(name, watched);
    value = watched.value;
  }
  if (any_fits(kept_patterns_, name)) {
    KeptValue kept{.value = copied(value.value()),
                   .offsets = {at.rows.offsets.begin(), at.rows.offsets.end()},
                   .positions = {at.rows.positions.begin(), at.rows.positions.end()},
                   .keys = {at.keys.begin(), at.keys.end()}};
    const std::lock_guard lock(*mutex_);
    kept_.insert_or_assign(name, std::move(kept));
  }
  return value;
}

Var SiteValues::gated(Tape& tape, const Site& site, const SiteValue& at) const {
  Var value = at.value;
  std::vector<int32_t> rows(static_cast<size_t>(value.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  for (const auto& [heads, gate] : gates_) {
    const auto& one = heads.one();
    if (one && one->attention == site.owner && one->head >= at.blocks) {
      throw UsageError(
          fmt::format("head '{}': {} has {} heads, numbered from 0", heads.text(), site.owner, at.blocks));
    }
    for (int head = 0; head < at.blocks; ++head) {
      if (heads.matches(site.owner, head)) value = mh::replace(tape, value, rows, head, {&gate, 1, 1});
    }
  }
  return value;
}

std::vector<HeadPattern> SiteValues::heads_asked() const {
  std::vector<HeadPattern> all;
  for (const Gate& gate : gates_) all.push_back(gate.heads);
  for (const RuledHeads& ruled : rules_) all.push_back(ruled.heads);
  return all;
}

bool SiteValues::empty() const {
  return kept_patterns_.empty() && watched_patterns_.empty() && replacements_.empty() && gates_.empty() &&
         rules_.empty();
}

std::vector<std::string> SiteValues::sites_asked() const {
  std::vector<std::string> all = kept_patterns_;
  all.insert(all.end(), watched_patterns_.begin(), watched_patterns_.end());
  for (const SiteReplacement& one : replacements_) all.push_back(one.site);
  return all;
}

}  // namespace mh
