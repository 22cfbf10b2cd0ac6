#include "multihead/heads/sites/site_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "multihead/autograd/replace.h"
#include "multihead/base/error.h"
#include "multihead/nn/head_name.h"

namespace mh {
namespace {

bool any_fits(const std::vector<SitePattern>& patterns, SiteName& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const SitePattern& pattern) { return pattern.fits(name); });
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

void SiteValues::ask(std::vector<SitePattern>& patterns, std::string pattern) {
  asked_parts_ |= patterns.emplace_back(std::move(pattern)).parts();
}

void SiteValues::change(SiteReplacement replacement, SiteChange how) {
  replacement.change = how;
  check_replacement(replacement);
  SitePattern where(replacement.site);
  asked_parts_ |= where.parts();
  replacements_.push_back({std::move(replacement), std::move(where)});
}

void SiteValues::put_gate(std::string_view heads, float gate, bool mutes) {
  if (!std::isfinite(gate))
    throw UsageError(fmt::format("head '{}': its gate is {}; expected a finite number", heads, gate));
  std::erase_if(gates_, [&](const Gate& other) { return other.heads.text() == heads; });
  gates_.push_back({HeadPattern(heads), gate, mutes});
}

void SiteValues::replace_weights(std::string_view heads, WeightRule rule) {
  std::erase_if(rules_, [&](const RuledHeads& other) { return other.heads.text() == heads; });
  rules_.push_back({HeadPattern(heads), rule});
}

const SiteValues::RuledHeads* SiteValues::rule_of(const Site& site) const {
  if (site.part != SitePart::kWeights) return nullptr;
  const auto last = std::find_if(rules_.rbegin(), rules_.rend(), [&](const RuledHeads& ruled) {
    return ruled.heads.matches(site.owner, site.head);
  });
  return last != rules_.rend() ? &*last : nullptr;
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
  if (site.part == SitePart::kGates && std::any_of(gates_.begin(), gates_.end(), [&](const Gate& gate) {
        return !gate.heads.one() || gate.heads.one()->attention == site.owner;
      }))
    return true;
  if (rule_of(site) != nullptr) return true;
  if ((asked_parts_ & bit_of(site.part)) == 0) return false;
  SiteName name(site);
  return any_fits(kept_patterns_, name) || any_fits(watched_patterns_, name) ||
         std::any_of(replacements_.begin(), replacements_.end(),
                     [&](const Replaced& one) { return one.where.fits(name); });
}

Var SiteValues::at(Tape& tape, const Site& site, const SiteValue& at) {
  SiteName name(site);
  Var value = site.part == SitePart::kGates ? gated(tape, site, at) : at.value;
  if (const RuledHeads* const ruled = rule_of(site)) {
    value = weights_by(tape, ruled->rule, at);
    *ruled->met = true;
  }
  for (const Replaced& one : replacements_) {
    if (!one.where.fits(name)) continue;
    const Var found = replaced(tape, one.what, site, at, value);
    if (!(found == value) || one.what.strength == 0) *one.met = true;  // which changes nothing anyway
    value = found;
  }
  if (any_fits(watched_patterns_, name)) {
    const Tape::Watched watched = tape.watch(value);
    const std::lock_guard lock(*mutex_);
    watched_.insert_or_assign(std::string(name.text()), watched);
    value = watched.value;
  }
  if (any_fits(kept_patterns_, name)) {
    KeptValue kept{.value = copied(value.value()),
                   .offsets = {at.rows.offsets.begin(), at.rows.offsets.end()},
                   .positions = {at.rows.positions.begin(), at.rows.positions.end()},
                   .keys = {at.keys.begin(), at.keys.end()}};
    const std::lock_guard lock(*mutex_);
    kept_.insert_or_assign(std::string(name.text()), std::move(kept));
  }
  return value;
}

Var SiteValues::gated(Tape& tape, const Site& site, const SiteValue& at) const {
  Var value = at.value;
  std::vector<int32_t> rows(static_cast<size_t>(value.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  for (const auto& [heads, gate, mutes, met] : gates_) {
    const auto& one = heads.one();
    if (one && one->attention == site.owner && one->head >= at.blocks) {
      throw UsageError(
          fmt::format("head '{}': {} has {} heads, numbered from 0", heads.text(), site.owner, at.blocks));
    }
    for (int head = 0; head < at.blocks; ++head) {
      if (!heads.matches(site.owner, head)) continue;
      value = mh::replace(tape, value, rows, head, {&gate, 1, 1});
      *met = true;
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
  std::vector<std::string> all;
  for (const auto* patterns : {&kept_patterns_, &watched_patterns_}) {
    for (const SitePattern& pattern : *patterns) all.push_back(pattern.text());
  }
  for (const Replaced& one : replacements_) all.push_back(one.what.site);
  return all;
}

void SiteValues::check(const SiteShape& site) const {
  for (const Replaced& one : replacements_) {
    if (fits(site.name, one.what.site)) check_replacement(one.what, site);
  }
}

void SiteValues::check(const HeadName& head) const {
  const auto by = [&](bool mutes) {
    return std::find_if(gates_.begin(), gates_.end(), [&](const Gate& gate) {
      return gate.mutes == mutes && gate.heads.matches(head.attention, head.head);
    });
  };
  const auto muted = by(true), gated = by(false);
  if (muted == gates_.end() || gated == gates_.end()) return;
  throw UsageError(fmt::format(
      "{}.{} is muted by '{}' and gated by '{}'; name it in one of them, or give the muting as a gate "
      "of 0: of several gates the last one counts",
      head.attention, head.head, muted->heads.text(), gated->heads.text()));
}

std::vector<std::string> SiteValues::unread() const {
  std::vector<std::string> lines;
  for (const Replaced& one : replacements_) {
    if (!*one.met)
      lines.push_back(fmt::format("nothing read what was {} at {}",
                                  one.what.change == SiteChange::kAdd ? "added" : "put",
                                  one.what.in_words()));
  }
  for (const Gate& gate : gates_) {
    if (!*gate.met) lines.push_back(fmt::format("nothing ran the gated head '{}'", gate.heads.text()));
  }
  for (const RuledHeads& ruled : rules_) {
    if (!*ruled.met)
      lines.push_back(fmt::format("nothing ran head '{}', whose weights follow a rule", ruled.heads.text()));
  }
  return lines;
}

}  // namespace mh
