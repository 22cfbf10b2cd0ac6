#include "multihead/evaluate/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/batch/check_ids.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/io/check_option.h"
#include "multihead/models/next_words.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// Tokens [begin, end) of a text, of which [first, end) are scored.
struct Window {
  size_t text, begin, first, end;
};

std::vector<Window> windows_of(std::span<const std::vector<int32_t>> texts, size_t context, size_t stride) {
  std::vector<Window> windows;
  for (size_t t = 0; t < texts.size(); ++t) {
    const size_t n = texts[t].size();
    for (size_t begin = 0, first = 1; first < n; begin += stride) {
      const size_t end = std::min(begin + context, n);
      windows.push_back({.text = t, .begin = begin, .first = first, .end = end});
      first = end;
    }
  }
  return windows;
}

}  // namespace

std::vector<std::vector<float>> score_windows(const LanguageModel& model,
                                              std::span<const std::vector<int32_t>> texts,
                                              const WindowOptions& options) {
  const ModelFacts facts = model.facts();
  facts.require_causal();
  check_settings(options);
  const int32_t context = options.context == 0 ? facts.max_positions : options.context;
  if (context < 2 || context > facts.max_positions) {
    throw UsageError(
        fmt::format("`context`: expected 2 to the model's longest {}, got {}", facts.max_positions, context));
  }
  const int32_t stride = options.stride == 0 ? context / 2 : options.stride;
  if (stride < 1 || stride >= context) {
    throw UsageError(
        fmt::format("`stride`: expected 1 to {}, one less than the context, got {}", context - 1, stride));
  }
  if (options.sites) model.check(*options.sites);
  check_ids(texts, {.what = "text", .vocabulary = facts.vocabulary});

  const std::vector<Window> windows =
      windows_of(texts, static_cast<size_t>(context), static_cast<size_t>(stride));
  std::vector<ExampleSize> sizes;
  for (const Window& window : windows)
    sizes.push_back({.tokens = static_cast<int64_t>(window.end - window.begin)});
  std::vector<std::vector<float>> results(texts.size());
  for (size_t t = 0; t < texts.size(); ++t) results[t].resize(std::max<size_t>(texts[t].size(), 1) - 1);

  std::vector<int64_t> lengths, texts_here;
  std::vector<int32_t> begins;  // of windows in their texts
  for (const auto& text : texts) lengths.push_back(std::ssize(text));
  const ListOffsets offsets = ListOffsets::of_texts(lengths);
  ListSites listed(options.sites);

  Tape tape;
  Context own{.tape = tape, .sites = listed.sites()};
  VocabularyScratch scratch;
  Batch batch;
  Ragged scored_rows;
  std::vector<int32_t> targets, positions;  // of scored rows
  AlignedBuffer<float> rows;                // [scored tokens of the batch, d_model]
  int64_t done = 0;
  const BatchOptions plan{.max_tokens = options.max_batch_tokens,
                          .order = BatchOptions::Order::kLongestFirst};
  for (const auto& numbers : plan_batches(sizes, plan)) {
    batch.clear();
    targets.clear();
    texts_here.clear();
    begins.clear();
    for (const int64_t number : numbers) {
      const Window& window = windows[static_cast<size_t>(number)];
      const std::span<const int32_t> text(texts[window.text]);
      texts_here.push_back(static_cast<int64_t>(window.text));
      begins.push_back(static_cast<int32_t>(window.begin));
      batch.add(text.subspan(window.begin, window.end - 1 - window.begin),
                number);  // nothing follows the last
      const auto scored = text.subspan(window.first, window.end - window.first);
      targets.insert(targets.end(), scored.begin(), scored.end());
    }
    listed.begin({.texts = texts_here, .begins = begins, .count = std::ssize(texts), .offsets = &offsets});
    tape.clear();
    const ConstMatrixView states = model.states(own, {}, batch.view()).value();
    // The state of token i - 1 predicts token i. Only those that are scored meet the vocabulary.
    rows.resize(std::ssize(targets) * states.cols);
    const MatrixView kept(rows.data(), std::ssize(targets), states.cols);
    int64_t row = 0;
    scored_rows.clear();
    positions.clear();
    for (int32_t s = 0; s < batch.ragged.sequences(); ++s) {
      const Window& window = windows[static_cast<size_t>(numbers[static_cast<size_t>(s)])];
      const auto before = static_cast<int64_t>(window.first - 1 - window.begin);
      for (int64_t i = before; i < batch.ragged.length(s); ++i) {
        std::copy_n(states.row(batch.ragged.begin(s) + i), states.cols, kept.row(row++));
        positions.push_back(static_cast<int32_t>(i));
      }
      scored_rows.add(batch.ragged.length(s) - static_cast<int32_t>(before));
    }
    NextWords next_words(model.vocabulary(), own, tape.constant(kept),
                         {.offsets = scored_rows.offsets(), .positions = positions});
    const auto found = next_words.log_probabilities(targets, scratch);
    auto next = found.begin();
    for (const int64_t number : numbers) {
      const Window& window = windows[static_cast<size_t>(number)];
      const auto count = static_cast<std::ptrdiff_t>(window.end - window.first);
      std::copy_n(next, count, results[window.text].begin() + static_cast<std::ptrdiff_t>(window.first) - 1);
      next += count;
    }
    done += std::ssize(targets);
    if (options.progress) options.progress(done);
  }
  return results;
}

double perplexity(std::span<const std::vector<float>> log_probabilities) {
  double sum = 0;
  int64_t tokens = 0;
  for (const std::vector<float>& text : log_probabilities) {
    for (const float p : text) sum += static_cast<double>(p);
    tokens += std::ssize(text);
  }
  const double mean = sum / static_cast<double>(tokens), found = std::exp(-mean);
  if (std::isinf(found)) {
    throw Error(
        fmt::format("the perplexity is beyond the largest number (mean log-probability {:.6g}); the model's "
                    "weights may be "
                    "damaged",
                    mean));
  }
  return found;
}

}  // namespace mh
