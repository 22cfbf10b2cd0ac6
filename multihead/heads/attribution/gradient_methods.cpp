#include "multihead/heads/attribution/gradient_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/site_values.h"

namespace mh {
namespace {

/// What the stacks read, in the order of the tokens: the sites and how many rows each has of one text.
std::vector<std::pair<std::string, int64_t>> read_sites(const ExplainedText& text) {
  const bool causal = text.model().kind() == ModelKind::kCausal;
  std::vector<std::pair<std::string, int64_t>> sites = {
      {causal ? "decoder.embeddings" : "encoder.embeddings", text.sources()}};
  if (text.translates()) sites.emplace_back("decoder.embeddings", text.targets());
  return sites;
}

}  // namespace

std::vector<double> gradient_times_input(const ExplainedText& text) {
  SiteValues values;
  const auto sites = read_sites(text);
  for (const auto& [site, rows] : sites) {
    values.keep(site);
    values.watch(site);
  }
  const std::vector<std::vector<int32_t>> variants = {text.ids()};
  ExplainedPass pass(text, variants, {.sites = &values, .mode = Tape::Mode::kRecordValues});
  pass.backward();
  std::vector<double> found;
  for (const auto& [site, rows] : sites) {
    const ConstMatrixView x = values.value(site).view(), gradient = values.gradient(site);
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < x.cols; ++c)
        sum += static_cast<double>(x(i, c)) * static_cast<double>(gradient(i, c));
      found.push_back(sum);
    }
  }
  return found;
}

std::vector<double> integrated_gradients(const ExplainedText& text, int steps, int64_t batch_tokens) {
  if (steps < 1) throw UsageError(fmt::format("`steps`: expected 1 or more, got {}", steps));
  const auto sites = read_sites(text);
  SiteValues ends;  // sequence 0: the text, 1: all replaced
  for (const auto& [site, rows] : sites) ends.keep(site);
  const std::vector<std::vector<int32_t>> both = {text.ids(), text.all_replaced()};
  const ExplainedPass read(text, both, {.sites = &ends});
  std::vector<double> found(text.tokens().size());
  const auto at_once = static_cast<int>(std::max<int64_t>(1, batch_tokens / std::ssize(found)));
  for (int begin = 0; begin < steps; begin += at_once) {
    const int count = std::min(at_once, steps - begin);
    SiteValues values;
    for (const auto& [site, rows] : sites) {
      const ConstMatrixView x = ends.kept(site).sequence(0), b = ends.kept(site).sequence(1);
      Tensor between(rows * count, x.cols);
      for (int k = 0; k < count; ++k) {
        const double share = (begin + k + 0.5) / steps;
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t c = 0; c < x.cols; ++c)
            between(k * rows + i, c) =
                static_cast<float>(static_cast<double>(b(i, c)) +
                                   share * (static_cast<double>(x(i, c)) - static_cast<double>(b(i, c))));
      }
      values.replace({.site = site, .numbers = std::move(between)});
      values.watch(site);
    }
    const std::vector<std::vector<int32_t>> copies(static_cast<size_t>(count), text.ids());
    ExplainedPass pass(text, copies, {.sites = &values, .mode = Tape::Mode::kRecordValues});
    pass.backward();
    size_t token = 0;
    for (const auto& [site, rows] : sites) {
      const ConstMatrixView x = ends.kept(site).sequence(0), b = ends.kept(site).sequence(1),
                            gradient = values.gradient(site);
      for (int64_t i = 0; i < rows; ++i, ++token)
        for (int k = 0; k < count; ++k)
          for (int64_t c = 0; c < x.cols; ++c)
            found[token] += (static_cast<double>(x(i, c)) - static_cast<double>(b(i, c))) *
                            static_cast<double>(gradient(k * rows + i, c)) / steps;
    }
  }
  return found;
}

}  // namespace mh
