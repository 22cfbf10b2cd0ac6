#include "multihead/heads/steering/heads_steer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/weights_hash.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/observe_text.h"

namespace mh {
namespace {

/// A site by its name. Throws UsageError when the model has none, or its columns are keys.
SiteShape site_named(const Model& model, const std::string& name, const char* field) {
  const std::vector<SiteShape> sites = model.sites();
  const auto found =
      std::find_if(sites.begin(), sites.end(), [&](const SiteShape& site) { return site.name == name; });
  if (found == sites.end()) {
    SiteValues asked;
    asked.keep(name);
    model.check(asked);  // which lists the sites that there are
    throw UsageError(fmt::format("`{}`: '{}' stands for several sites; name one", field, name));
  }
  if (found->columns == 0)
    throw UsageError(
        fmt::format("`{}`: the columns of '{}' are keys, of which each text has others; name a site of as "
                    "many columns in all",
                    field, name));
  return *found;
}

/// Where a direction of a site is added unless somebody says: what a head contributes where the attention adds it.
std::string place_of(const std::string& site) {
  const size_t at = site.find(".contributions.");
  return at == std::string::npos ? site : site.substr(0, at) + ".output";
}

class RowReader {
 public:
  RowReader(const ModelFolder& folder, const DirectionTexts& texts, const DirectionOptions& options)
      : folder_(folder),
        texts_(texts),
        options_(options),
        rows_(options.rows.value_or(is_causal(folder) ? DirectionRows::kLast : DirectionRows::kAll)) {
    const SiteShape site = site_named(*folder.model, texts.site, "site");
    if (texts.head && (*texts.head < 0 || *texts.head >= site.blocks))
      throw UsageError(fmt::format("`head`: there is no head {} at '{}'; it has {}, numbered from 0",
                                   *texts.head, site.name, site.blocks));
    columns_ = texts.head ? site.columns / site.blocks : site.columns;
  }

  int64_t columns() const { return columns_; }
  DirectionRows rows() const { return rows_; }
  /// The mean length of the rows of all texts that were read.
  double mean_length() const { return lengths_ / static_cast<double>(read_); }

  /// The mean of r(x). Throws UsageError where there are no texts, or one has no words.
  std::vector<double> mean(const std::vector<std::string>& texts, const char* field) {
    if (texts.empty()) throw UsageError(fmt::format("`{}`: there are no texts; give at least one", field));
    std::vector<double> sum(static_cast<size_t>(columns_));
    for (size_t t = 0; t < texts.size(); ++t) {
      if (texts[t].find_first_not_of(" \t\r\n") == std::string::npos)
        throw UsageError(fmt::format("`{}`: text {} has no words; leave it out", field, t + 1));
      const std::vector<double> row = row_of(texts[t]);
      double squares = 0;
      for (size_t c = 0; c < row.size(); ++c) {
        sum[c] += row[c] / static_cast<double>(texts.size());
        squares += row[c] * row[c];
      }
      lengths_ += std::sqrt(squares);
      ++read_;
      if (options_.progress) options_.progress(read_);
    }
    return sum;
  }

 private:
  /// r(x).
  std::vector<double> row_of(const std::string& text) const {
    const Observation seen = observe_text(folder_, text, {},
                                          {.keep = {texts_.site},
                                           .sites = options_.sites,
                                           .number = read_,
                                           .remark = options_.remark,
                                           .languages = options_.languages});
    const ConstMatrixView all = seen.value(texts_.site).view();
    const ConstMatrixView own =
        all.columns_between(texts_.head.value_or(0) * columns_, (texts_.head.value_or(0) + 1) * columns_);
    const int64_t first = rows_ == DirectionRows::kLast ? own.rows - 1 : 0;
    std::vector<double> row(static_cast<size_t>(columns_));
    for (int64_t i = first; i < own.rows; ++i) {
      for (int64_t c = 0; c < columns_; ++c)
        row[static_cast<size_t>(c)] += static_cast<double>(own(i, c)) / static_cast<double>(own.rows - first);
    }
    return row;
  }

  const ModelFolder& folder_;
  const DirectionTexts& texts_;
  const DirectionOptions& options_;
  DirectionRows rows_;
  int64_t columns_ = 0, read_ = 0;
  double lengths_ = 0;
};

std::string made_in_words(const DirectionTexts& texts, DirectionRows rows) {
  const auto of = [&](const std::vector<std::string>& some) {
    return fmt::format("the {} {} of {} {}", rows == DirectionRows::kLast ? "last" : "mean",
                       some.size() == 1 ? "row" : "rows", some.size(), some.size() == 1 ? "text" : "texts");
  };
  std::string words = "mean of " + of(texts.toward);
  if (!texts.away.empty()) words += " less that of " + of(texts.away);
  words += fmt::format(", read at {}", texts.site);
  if (texts.head) words += fmt::format(", head {}", *texts.head);
  return words;
}

}  // namespace

SteerDirection make_direction(const ModelFolder& folder, const DirectionTexts& texts,
                              const DirectionOptions& options) {
  RowReader reader(folder, texts, options);
  const std::string place = texts.at.empty() ? place_of(texts.site) : texts.at;
  SteerDirection direction{.site = place, .numbers = Tensor(1, reader.columns())};
  if (place == texts.site) direction.head = texts.head;
  const SiteShape site = site_named(*folder.model, place, "at");
  if (!direction.head && site.columns != reader.columns())
    throw UsageError(fmt::format(
        "`at`: '{}' has {} columns, and the direction that '{}' gives has {}; name a site of as many", place,
        site.columns, texts.site, reader.columns()));
  const std::vector<double> toward = reader.mean(texts.toward, "toward"),
                            away = texts.away.empty() ? std::vector<double>(toward.size())
                                                      : reader.mean(texts.away, "away");
  for (size_t c = 0; c < toward.size(); ++c)
    direction.numbers(0, static_cast<int64_t>(c)) = static_cast<float>(toward[c] - away[c]);
  if (direction.length() == 0)
    throw UsageError(
        fmt::format("the direction is 0, since the texts do not differ at '{}'; take others, or another site",
                    texts.site));
  direction.row_length = reader.mean_length();
  direction.weights = weights_hash(folder);
  direction.made = made_in_words(texts, reader.rows());
  return direction;
}

}  // namespace mh
