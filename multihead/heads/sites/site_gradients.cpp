#include "multihead/heads/sites/site_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "multihead/autograd/ops.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/base/stop.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/heads/sites/site_pattern.h"
#include "multihead/heads/sites/text_pass.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// A value whose gradient is asked for, and which of its rows and columns are whose.
struct WatchedSite {
  Tape::Watched watched;
  std::vector<int32_t> offsets;  // [S + 1]
  std::vector<int32_t> keys;     // [N], of scores and weights

  int64_t first(size_t s) const { return offsets[s]; }
  int64_t rows(size_t s) const { return offsets[s + 1] - offsets[s]; }
  int64_t columns(size_t s) const {
    return keys.empty() ? watched.value.cols() : keys[static_cast<size_t>(offsets[s])];
  }
};

/// Watches the site whose values are summed, and those that are asked for as long as it has not been computed.
class SitesUpTo final : public Sites {
 public:
  explicit SitesUpTo(const SiteGradientsAsked& asked) : asked_(asked), of_(asked.of) {
    for (const std::string& pattern : asked.at) at_.emplace_back(pattern);
  }

  bool wants(const Site& site) const override {
    if (reached()) return false;
    SiteName name(site);
    return of_.fits(name) || std::any_of(at_.begin(), at_.end(),
                                         [&](const SitePattern& pattern) { return pattern.fits(name); });
  }
  Var at(Tape& tape, const Site& site, const SiteValue& value) override {
    SiteName name(site);
    const bool last = of_.fits(name);
    const Tape::Watched watched = tape.watch(value.value);
    found_.emplace(name.text(), WatchedSite{.watched = watched,
                                            .offsets = {value.rows.offsets.begin(), value.rows.offsets.end()},
                                            .keys = {value.keys.begin(), value.keys.end()}});
    // What comes behind needs no gradients, and so records nothing.
    return last ? tape.constant(watched.value.value()) : watched.value;
  }
  std::vector<std::string> sites_asked() const override {
    std::vector<std::string> all = asked_.at;
    all.push_back(asked_.of);
    return all;
  }

  bool reached() const { return found_.contains(asked_.of); }
  const WatchedSite& of() const { return found_.at(asked_.of); }
  const std::map<std::string, WatchedSite, std::less<>>& found() const { return found_; }

 private:
  const SiteGradientsAsked& asked_;
  SitePattern of_;
  std::vector<SitePattern> at_;
  std::map<std::string, WatchedSite, std::less<>> found_;
};

/// What was asked, checked against a model.
class Question {
 public:
  Question(const Model& model, const SiteGradientsAsked& asked) : asked_(asked), all_(model.sites()) {
    if (asked.of.find('*') != std::string::npos)
      throw UsageError(fmt::format("`of`: expected the name of one site, got the pattern '{}'", asked.of));
    if (asked.at.empty()) throw UsageError("`at`: name at least one site (docs/sites.md)");
    model.check(SitesUpTo(asked), all_);
    of_ =
        *std::find_if(all_.begin(), all_.end(), [&](const SiteShape& site) { return site.name == asked.of; });
    if (asked.head && (*asked.head < 0 || *asked.head >= of_.blocks))
      throw UsageError(
          of_.blocks == 1
              ? fmt::format("`head`: the columns of {} are not those of heads; leave it out", asked.of)
              : fmt::format("`head`: expected 0 to {}, the heads of {}, got {}", of_.blocks - 1, asked.of,
                            *asked.head));
  }

  /// The columns of the site of a text of so many keys that a sum is of: the first one, and how many.
  std::pair<int64_t, int64_t> columns(int64_t columns) const {
    const int64_t width = columns / of_.blocks;
    return asked_.head ? std::pair(*asked_.head * width, width) : std::pair<int64_t, int64_t>(0, columns);
  }
  /// Throws on what is wrong for texts of any length.
  void check(const SiteSum& sum) const {
    if (!all_finite(sum.along.view())) throw UsageError("`along`: a number in it is not finite");
    if (of_.columns > 0) check_columns(sum, columns(of_.columns).second);
  }
  void check_columns(const SiteSum& sum, int64_t width) const {
    for (const int32_t column : sum.columns) {
      if (column < 0 || column >= width)
        throw UsageError(
            fmt::format("`along`: expected columns 0 to {} of {}, got {}", width - 1, asked_.of, column));
    }
    const int64_t wanted = sum.columns.empty() ? width : std::ssize(sum.columns);
    if (sum.along.cols() != wanted)
      throw ShapeError(fmt::format("`along`: {}{} has {} columns, got {} numbers", asked_.of,
                                   asked_.head ? fmt::format(", head {},", *asked_.head) : "", wanted,
                                   sum.along.cols()));
  }
  /// The names in `at` that have gradients. Throws UsageError on a pattern that none of the sites found fits.
  std::vector<std::string> names(const SitesUpTo& sites) const {
    for (const std::string& pattern : asked_.at) {
      const auto fits_one = [&](const auto& one) { return fits(one.first, pattern); };
      if (std::none_of(sites.found().begin(), sites.found().end(), fits_one))
        throw UsageError(
            fmt::format("`at`: the value at {} does not depend on {}; name sites that it is computed from "
                        "(docs/sites.md)",
                        asked_.of, pattern));
    }
    std::vector<std::string> found;
    for (const SiteShape& site : all_) {
      if (sites.found().contains(site.name) &&
          std::any_of(asked_.at.begin(), asked_.at.end(),
                      [&](const std::string& pattern) { return fits(site.name, pattern); }))
        found.push_back(site.name);
    }
    return found;
  }
  const std::string& of() const { return asked_.of; }

 private:
  const SiteGradientsAsked& asked_;
  std::vector<SiteShape> all_;
  SiteShape of_;
};

/// Writes what the values of a text are multiplied by into its rows, and returns the sum. text: what errors call it.
double put_weights(const Question& question, const SiteSum& sum, const std::string& text,
                   const WatchedSite& site, size_t s, MatrixView weights) {
  const int64_t rows = site.rows(s);
  const auto [left, width] = question.columns(site.columns(s));
  question.check_columns(sum, width);
  int64_t begin = 0, end = rows;
  if (sum.position) {
    begin = *sum.position < 0 ? rows + *sum.position : *sum.position;
    if (begin < 0 || begin >= rows)
      throw UsageError(fmt::format("`position`: {} has {} rows at {}; expected {} to {}, got {}", text, rows,
                                   question.of(), -rows, rows - 1, *sum.position));
    end = begin + 1;
  }
  if (sum.along.rows() != 1 && sum.along.rows() != end - begin)
    throw ShapeError(fmt::format("`along`: {} rows of {} are meant in {}, got {} rows of numbers",
                                 end - begin, question.of(), text, sum.along.rows()));
  const ConstMatrixView values = site.watched.value.value();
  double value = 0;
  for (int64_t i = begin; i < end; ++i) {
    const float* const along = sum.along.view().row(sum.along.rows() == 1 ? 0 : i - begin);
    for (int64_t c = 0; c < sum.along.cols(); ++c) {
      const int64_t row = site.first(s) + i,
                    column = left + (sum.columns.empty() ? c : sum.columns[static_cast<size_t>(c)]);
      weights(row, column) += along[c];
      value += static_cast<double>(along[c]) * static_cast<double>(values(row, column));
    }
  }
  return value;
}

/// How long the texts are, as sites count their rows.
ListOffsets offsets_of(std::span<const Observation> texts) {
  std::vector<int64_t> sources, targets;
  for (const Observation& text : texts) {
    sources.push_back(std::ssize(text.source.ids));
    targets.push_back(std::ssize(text.target.ids));
  }
  return ListOffsets::of_pairs(sources, targets);
}

std::vector<std::vector<int64_t>> plan(std::span<const Observation> texts) {
  std::vector<ExampleSize> sizes;
  for (const Observation& text : texts)
    sizes.push_back({.tokens = std::ssize(text.source.ids) + std::ssize(text.target.ids)});
  return plan_batches(sizes,
                      {.max_tokens = kMostGradientTokens, .order = BatchOptions::Order::kLongestFirst});
}

}  // namespace

std::vector<SiteGradients> site_gradients(const Model& model, std::span<const Observation> texts,
                                          const SiteGradientsAsked& asked, std::span<const SiteSum> sums,
                                          Sites* sites) {
  const Question question(model, asked);
  for (const SiteSum& sum : sums) question.check(sum);
  const ListOffsets offsets = offsets_of(texts);
  std::vector<SiteGradients> found(texts.size());
  for (const std::vector<int64_t>& numbers : plan(texts)) {
    throw_if_stopped();
    std::vector<const Observation*> batch;
    for (const int64_t n : numbers) batch.push_back(&texts[static_cast<size_t>(n)]);
    SitesUpTo watched(asked);
    ListSites listed(sites, {.texts = numbers, .count = std::ssize(texts), .offsets = &offsets});
    SitesInTurn both(listed.sites(), watched);
    TextPass pass(model, batch, {.sites = &both, .mode = Tape::Mode::kRecordValues});
    pass.call_output_sites();
    if (!watched.reached())
      throw UsageError(fmt::format("`of`: the model does not compute {} when it reads a text", asked.of));
    const WatchedSite& of = watched.of();
    Tensor weights(of.watched.value.rows(), of.watched.value.cols());
    weights.fill(0);
    for (size_t s = 0; s < numbers.size(); ++s) {
      const auto n = static_cast<size_t>(numbers[s]);
      const std::string text = texts.size() == 1 ? "the text" : fmt::format("text {}", n);
      found[n].value = put_weights(question, sums[n], text, of, s, weights.view());
    }
    const Var weighted = ops::multiply(pass.tape(), of.watched.value, pass.tape().constant(weights.view()));
    pass.tape().backward(ops::sum(pass.tape(), weighted));
    for (const std::string& name : question.names(watched)) {
      const WatchedSite& site = watched.found().at(name);
      for (size_t s = 0; s < numbers.size(); ++s) {
        const ConstMatrixView own =
            site.watched.gradient.rows_between(site.first(s), site.first(s) + site.rows(s));
        require_finite(own, "gradients", both.changes() ? Blame::kEdits : Blame::kWeights);
        found[static_cast<size_t>(numbers[s])].gradients.emplace_back(
            name, copied(own.columns_between(0, site.columns(s))));
      }
    }
  }
  return found;
}

}  // namespace mh
