#include "multihead/tasks/embed_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "multihead/autograd/pool_rows.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/base/thread_pool.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/kernels/gemm.h"
#include "multihead/nn/list_sites.h"
#include "multihead/tensor/cosine.h"

namespace mh {
namespace {

constexpr int64_t kLeastBatchTokens = 512;

/// Of numbers that the caller has from anywhere; embed_text() gives no others.
void require_finite_rows(ConstMatrixView rows, int64_t begin, int64_t end, const char* what) {
  for (int64_t i = begin; i < end; ++i) {
    if (!all_finite(rows.rows_between(i, i + 1)))
      throw UsageError(fmt::format("{}: row {} has numbers that are not finite", what, i));
  }
}

/// A copy whose rows have length 1.
Tensor normalised(ConstMatrixView rows) {
  Tensor copy = copied(rows);
  divide_by_lengths(copy.view(), copy.view());
  return copy;
}

}  // namespace

Tensor embed_text(const SentenceModel& model, const std::vector<std::string>& lines,
                  const EmbedTextOptions& options) {
  check_sentence_model(model);
  if (options.sites) model.folder.model->check(*options.sites, model.sites());
  const std::vector<TextTokens> sentences = sentence_tokens(
      model, lines,
      {.from = options.from, .seconds = options.pairs, .remark = options.remark, .strict = options.strict});
  std::vector<ExampleSize> sizes;
  sizes.reserve(sentences.size());
  std::vector<int64_t> lengths;
  int64_t all_tokens = 0;
  for (const TextTokens& sentence : sentences) {
    sizes.push_back({.tokens = std::ssize(sentence.ids)});
    lengths.push_back(sizes.back().tokens);
    all_tokens += sizes.back().tokens;
  }
  const ListOffsets offsets = ListOffsets::of_texts(lengths);
  // A batch or more for each thread, if they do not become too small for fast products.
  const int threads = thread_count();
  const int64_t fair = std::max(kLeastBatchTokens, (all_tokens + threads - 1) / threads);
  const auto batches = plan_batches(sizes, {.max_tokens = std::min(options.max_batch_tokens, fair),
                                            .order = BatchOptions::Order::kLongestFirst});

  Tensor rows(static_cast<int64_t>(lines.size()), model.dimension);
  std::vector<std::unique_ptr<Tape>> tapes(static_cast<size_t>(threads));
  std::atomic<int64_t> done{
      std::count_if(sizes.begin(), sizes.end(), [](const ExampleSize& size) { return size.tokens == 0; })};
  const auto run_batch = [&](int64_t number, int thread) {
    auto& tape = tapes[static_cast<size_t>(thread)];
    if (!tape) tape = std::make_unique<Tape>();
    tape->clear();
    const auto& batch = batches[static_cast<size_t>(number)];
    ListSites listed(options.sites, {.texts = batch, .count = std::ssize(lengths), .offsets = &offsets});
    Context context{.tape = *tape, .sites = listed.sites()};
    Batch tokens;
    for (const int64_t i : batch) {
      const TextTokens& sentence = sentences[static_cast<size_t>(i)];
      tokens.add(sentence.ids, i, sentence.types);
    }
    const ConstMatrixView vectors = model.vectors(context, tokens.view()).value();
    for (size_t s = 0; s < batch.size(); ++s)
      std::copy_n(vectors.row(static_cast<int64_t>(s)), model.dimension, rows.view().row(batch[s]));
    done += static_cast<int64_t>(batch.size());
    if (options.progress && thread == 0) options.progress(done);
  };
  const auto count = static_cast<int64_t>(batches.size());
  if (threads > 1 && count >= threads) {
    parallel_for(count, run_batch);
    if (options.progress) options.progress(done);  // the last batch may be another thread's
  } else {                                         // all threads work on one batch together
    for (int64_t i = 0; i < count; ++i) run_batch(i, 0);
  }
  return rows;
}

double cosine(ConstMatrixView rows, int64_t i, int64_t j) {
  for (const int64_t row : {i, j}) {
    if (row < 0 || row >= rows.rows)
      throw UsageError(fmt::format("cosine: there is no row {}; there are {}", row, rows.rows));
    require_finite_rows(rows, row, row + 1, "cosine");
  }
  const auto row = [&](int64_t n) { return std::span(rows.row(n), static_cast<size_t>(rows.cols)); };
  return cosine(row(i), row(j));
}

std::vector<std::vector<Neighbour>> nearest_rows(ConstMatrixView queries, ConstMatrixView rows,
                                                 int64_t count) {
  if (count < 1) throw UsageError(fmt::format("nearest rows: expected at least 1, got {}", count));
  if (queries.cols != rows.cols) {
    throw ShapeError(
        fmt::format("nearest rows: queries of {} numbers and rows of {}", queries.cols, rows.cols));
  }
  std::vector<std::vector<Neighbour>> nearest(static_cast<size_t>(queries.rows));
  const int64_t kept = std::min(count, rows.rows);
  if (kept == 0 || queries.rows == 0) return nearest;
  for (const ConstMatrixView given : {queries, rows})
    require_finite_rows(given, 0, given.rows, "nearest rows");
  const Tensor unit_queries = normalised(queries), unit_rows = normalised(rows);
  PackedMatrix packed;
  packed.pack_transposed(unit_rows.view());
  constexpr int64_t kQueriesAtOnce = 256;  // bounds the memory of the cosines
  for (int64_t begin = 0; begin < queries.rows; begin += kQueriesAtOnce) {
    const int64_t here = std::min(kQueriesAtOnce, queries.rows - begin);
    Tensor cosines(here, rows.rows);
    multiply(ConstMatrixView(unit_queries.view().row(begin), here, queries.cols), packed, cosines.view());
    parallel_for(here, [&](int64_t q) {
      const float* const of_query = cosines.view().row(q);
      std::vector<Neighbour> all(static_cast<size_t>(rows.rows));
      for (size_t i = 0; i < all.size(); ++i) all[i] = {static_cast<int64_t>(i), of_query[i]};
      std::partial_sort(all.begin(), all.begin() + kept, all.end(),
                        [](const Neighbour& a, const Neighbour& b) {
                          return a.cosine != b.cosine ? a.cosine > b.cosine : a.row < b.row;
                        });
      all.resize(static_cast<size_t>(kept));
      nearest[static_cast<size_t>(begin + q)] = std::move(all);
    });
  }
  return nearest;
}

}  // namespace mh
