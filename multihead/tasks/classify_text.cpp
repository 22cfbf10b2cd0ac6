#include "multihead/tasks/classify_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/io/check_option.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

const Labels& labels_of(const ModelFolder& folder) {
  if (folder.labels) return *folder.labels;
  throw UsageError(
      fmt::format("{} holds a {} model without a layer of labels; take one that was saved as "
                  "...ForSequenceClassification or "
                  "...ForTokenClassification",
                  folder.path.string(), folder.model_type));
}

std::vector<double> scores_of(std::span<const float> logits, LabelScores kind) {
  std::vector<double> scores(logits.begin(), logits.end());
  if (kind == LabelScores::kSoftmax) {
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - most);
    for (double& score : scores) score /= sum;
  } else if (kind == LabelScores::kSigmoid) {
    for (double& score : scores) score = 1 / (1 + std::exp(-score));
  }
  return scores;
}

LabelRow row_of(std::span<const float> logits, LabelScores kind) {
  return {.logits = {logits.begin(), logits.end()}, .scores = scores_of(logits, kind)};
}

}  // namespace

std::vector<int32_t> LabelRow::best_first() const {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return order;
}

std::vector<LabelledText> classify_text(const ModelFolder& folder, const std::vector<std::string>& texts,
                                        const ClassifyOptions& options) {
  const Labels& labels = labels_of(folder);
  const Model& model = *folder.model;
  const bool of_tokens = labels.of == LabelsOf::kTokens;
  check_settings(options);
  if (of_tokens && !options.pairs.empty())
    throw UsageError("a classifier of tokens reads one text at a time; leave the second texts out");
  if (options.sites) model.check(*options.sites);
  const Tokenizer& tokenizer = folder.source_tokens();
  const auto longest = static_cast<size_t>(model.facts().max_positions);
  const std::vector<TextTokens> read = read_lines(
      TextReader(folder, {.longest = longest, .offsets = of_tokens}), texts,
      {.from = options.from, .seconds = options.pairs, .remark = options.remark, .strict = options.strict});
  std::vector<ExampleSize> sizes;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (read[i].ids.empty())
      throw UsageError(fmt::format("{} has no tokens; give a text with words", options.from.at(i)));
    lengths.push_back(std::ssize(read[i].ids));
    sizes.push_back({.tokens = lengths.back()});
  }

  std::vector<LabelledText> found(texts.size());
  const ListOffsets offsets = ListOffsets::of_texts(lengths);
  ListSites listed(options.sites);
  Tape tape;
  Context context{.tape = tape, .sites = listed.sites()};
  const BatchOptions plan{.max_tokens = options.max_batch_tokens,
                          .order = BatchOptions::Order::kLongestFirst};
  for (const auto& numbers : plan_batches(sizes, plan)) {
    Batch batch;
    for (const int64_t n : numbers)
      batch.add(read[static_cast<size_t>(n)].ids, n, read[static_cast<size_t>(n)].types);
    listed.begin({.texts = numbers, .count = std::ssize(lengths), .offsets = &offsets});
    tape.clear();
    const Var states = model.read(context, batch.view(), {});
    const ConstMatrixView logits = model.label_logits(context, states, batch.view()).value();
    const auto row = [&](int64_t i) {
      return row_of({logits.row(i), static_cast<size_t>(logits.cols)}, labels.scores);
    };
    for (size_t s = 0; s < numbers.size(); ++s) {
      const auto n = static_cast<size_t>(numbers[s]);
      LabelledText& text = found[n];
      if (!of_tokens) {
        text.rows.push_back(row(static_cast<int64_t>(s)));
        continue;
      }
      const int32_t begin = batch.ragged.begin(static_cast<int32_t>(s));
      for (size_t i = 0; i < read[n].ids.size(); ++i) {
        if (read[n].offsets[i] == std::pair(0, 0)) continue;  // a special token
        const int32_t id = read[n].ids[i];
        text.rows.push_back(row(begin + static_cast<int64_t>(i)));
        text.tokens.push_back({.id = id, .token = tokenizer.token_of(id), .characters = read[n].offsets[i]});
      }
    }
  }
  return found;
}

}  // namespace mh
