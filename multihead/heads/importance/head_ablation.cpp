#include "multihead/heads/importance/head_ablation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/heads/importance/score_pass.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/heads/sites/stack_streams.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/stack_config.h"

namespace mh {
namespace {

/// What takes a head away, or all others of its attention.
SiteValues ablated(const HeadName& head, int heads, const HeadAblationOptions& options,
                   std::span<const HeadName> all, std::span<const Tensor> means) {
  SiteValues values;
  for (int h = 0; h < heads; ++h) {
    if ((h == head.head) == options.all_others) continue;
    if (options.to == AblatedTo::kZero) {
      values.mute(fmt::format("{}.{}", head.attention, h));
      continue;
    }
    const auto found = std::find(all.begin(), all.end(), HeadName{head.attention, h});
    values.replace({.site = head.attention + ".heads",
                    .head = h,
                    .numbers = copied(means[static_cast<size_t>(found - all.begin())].view())});
  }
  return values;
}

}  // namespace

std::vector<Tensor> mean_outputs(const ScoredModel& model, const ScoredTexts& texts,
                                 std::span<const HeadName> heads, int64_t max_batch_tokens, Sites* sites) {
  std::map<std::string, std::vector<double>> sums;  // of the columns of all heads of an attention
  for (const HeadName& head : heads) sums[head.attention];
  std::map<std::string, int64_t> rows;
  Tape tape;
  for (const auto& numbers : plan_scored(texts, max_batch_tokens)) {
    SiteValues values;
    for (const auto& [attention, sum] : sums) values.keep(attention + ".heads");
    SitesInTurn both(sites, values);
    const ScoredBatch batch = scored_batch(*model.folder().model, texts, numbers);
    const ScorePass pass(tape, model, texts.kind, batch, {.sites = &both});
    for (auto& [attention, sum] : sums) {
      const Tensor& output = values.value(attention + ".heads");
      sum.resize(static_cast<size_t>(output.cols()));
      for (int64_t i = 0; i < output.rows(); ++i) {
        for (size_t c = 0; c < sum.size(); ++c) sum[c] += static_cast<double>(output.view().row(i)[c]);
      }
      rows[attention] += output.rows();
    }
  }
  std::vector<Tensor> means;
  for (const HeadName& head : heads) {
    const std::vector<double>& sum = sums[head.attention];
    const int64_t size = std::ssize(sum) / model.folder().model->attention(head.attention).geometry().heads;
    Tensor& mean = means.emplace_back(1, size);
    for (int64_t c = 0; c < size; ++c) {
      const double all = sum[static_cast<size_t>(head.head * size + c)];
      mean.view()(0, c) = static_cast<float>(all / static_cast<double>(rows[head.attention]));
    }
  }
  return means;
}

HeadAblation ablate_heads(const ScoredModel& model, const ScoredTexts& texts, std::span<const HeadName> heads,
                          const HeadAblationOptions& options) {
  const Model& all = *model.folder().model;
  std::map<std::string, int> heads_of;
  std::vector<HeadName> with_means;  // all heads of the attentions
  for (const HeadName& head : heads) {
    all.heads_named(HeadPattern(head.name()));
    const int count = all.attention(head.attention).geometry().heads;
    if (!heads_of.emplace(head.attention, count).second) continue;
    for (int h = 0; h < count; ++h) with_means.push_back({head.attention, h});
  }
  std::vector<Tensor> means;
  if (options.to == AblatedTo::kMean)
    means = mean_outputs(model, texts, with_means, options.max_batch_tokens, options.sites);

  const auto count = std::ssize(texts.texts);
  HeadAblation found{.scores = std::vector<double>(static_cast<size_t>(count)),
                     .losses = Tensor(count, std::ssize(heads))};
  const StackStreams streams(all);
  VocabularyScratch scratch;
  Tape of_whole, without_head;
  for (const auto& numbers : plan_scored(texts, options.max_batch_tokens)) {
    const ScoredBatch batch = scored_batch(all, texts, numbers);
    SiteValues inputs;
    streams.keep(inputs);
    SitesInTurn whole_sites(options.sites, inputs);
    ScorePass whole(of_whole, model, texts.kind, batch, {.sites = &whole_sites});
    const ConstMatrixView references =
        texts.kind == ScoreKind::kVectors ? whole.vectors() : ConstMatrixView();
    const std::vector<double> before = whole.scores(references, scratch);
    for (size_t s = 0; s < numbers.size(); ++s) found.scores[static_cast<size_t>(numbers[s])] = before[s];
    for (size_t h = 0; h < heads.size(); ++h) {
      SiteValues without = ablated(heads[h], heads_of[heads[h].attention], options, with_means, means);
      SitesInTurn sites(options.sites, without);
      const AttentionPlace place = all.place(heads[h].attention);
      const std::vector<LayerStart> starts =
          streams.starts(std::string(place.stack()), place.layer,
                         [&](const std::string& site) { return inputs.value(site).view(); });
      ScorePass pass(without_head, model, texts.kind, batch, {.sites = &sites, .starts = starts});
      const std::vector<double> after = pass.scores(references, scratch);
      for (size_t s = 0; s < numbers.size(); ++s)
        found.losses.view()(numbers[s], static_cast<int64_t>(h)) = static_cast<float>(before[s] - after[s]);
      if (options.progress)
        options.progress(numbers.front() * std::ssize(heads) +
                         std::ssize(numbers) * (static_cast<int64_t>(h) + 1));
    }
  }
  require_finite(found.losses.view(), "scores without a head");
  return found;
}

}  // namespace mh
