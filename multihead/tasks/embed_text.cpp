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
#include "multihead/batch/check_ids.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/io/check_option.h"
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

void require_comparable(ConstMatrixView queries, ConstMatrixView rows, const char* what) {
  if (queries.cols != rows.cols)
    throw ShapeError(fmt::format("{}: queries of {} numbers and rows of {}", what, queries.cols, rows.cols));
  for (const ConstMatrixView given : {queries, rows}) require_finite_rows(given, 0, given.rows, what);
}

/// A copy whose rows have length 1.
Tensor normalised(ConstMatrixView rows) {
  Tensor copy = copied(rows);
  divide_by_lengths(copy.view(), copy.view());
  return copy;
}

std::span<const float> row_of(ConstMatrixView rows, int64_t i) {
  return {rows.row(i), static_cast<size_t>(rows.cols)};
}

double similarity_of_rows(std::span<const float> x, std::span<const float> y, Similarity kind) {
  if (kind == Similarity::kCosine) return cosine(x, y);
  double dot = 0, squares = 0, absolutes = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto a = static_cast<double>(x[i]), b = static_cast<double>(y[i]);
    dot += a * b;
    squares += (a - b) * (a - b);
    absolutes += std::abs(a - b);
  }
  if (kind == Similarity::kDot) return dot;
  return kind == Similarity::kEuclidean ? -std::sqrt(squares) : -absolutes;
}

/// How alike queries and rows are: cosines and dot products by one matrix product, distances pair by pair.
class Similarities {
 public:
  Similarities(ConstMatrixView queries, ConstMatrixView rows, Similarity kind)
      : queries_(queries), rows_(rows), kind_(kind) {
    if (kind == Similarity::kCosine) {
      unit_queries_ = normalised(queries);
      queries_ = unit_queries_.view();
      packed_.pack_transposed(normalised(rows).view());
    } else if (kind == Similarity::kDot) {
      packed_.pack_transposed(rows);
    }
  }
  /// [end - begin, rows]
  Tensor of_queries(int64_t begin, int64_t end) const {
    Tensor found(end - begin, rows_.rows);
    if (kind_ == Similarity::kCosine || kind_ == Similarity::kDot) {
      multiply(queries_.rows_between(begin, end), packed_, found.view());
      return found;
    }
    parallel_for(found.rows(), [&](int64_t q) {
      for (int64_t i = 0; i < rows_.rows; ++i) {
        const double alike = similarity_of_rows(row_of(queries_, begin + q), row_of(rows_, i), kind_);
        found.view()(q, i) = static_cast<float>(alike);
      }
    });
    return found;
  }

 private:
  ConstMatrixView queries_, rows_;
  Similarity kind_;
  Tensor unit_queries_;
  PackedMatrix packed_;
};

void check_embedding(const SentenceModel& model, const EmbedTextOptions& options) {
  check_settings(options);
  check_sentence_model(model);
  if (options.sites) model.folder.model->check(*options.sites, model.sites());
}

/// unpooled: tokens at the start of each that no pooling takes.
Tensor vectors_of(const SentenceModel& model, std::span<const TextTokens> sentences, int32_t unpooled,
                  const EmbedTextOptions& options) {
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

  Tensor rows(std::ssize(sentences), model.dimension);
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
    const ConstMatrixView vectors = model.vectors(context, tokens.view(), unpooled).value();
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

}  // namespace

Tensor embed_text(const SentenceModel& model, const std::vector<std::string>& lines,
                  const EmbedTextOptions& options) {
  check_embedding(model, options);
  const TextPrompt prompt = chosen_prompt(model, options.prompt_name, options.prompt);
  const std::vector<TextTokens> sentences = sentence_tokens(
      model, lines,
      {.from = options.from, .seconds = options.pairs, .remark = options.remark, .strict = options.strict},
      prompt.text);
  return vectors_of(model, sentences, prompt.unpooled, options);
}

Tensor embed_tokens(const SentenceModel& model, std::vector<std::vector<int32_t>> ids,
                    const EmbedTextOptions& options) {
  if (options.prompt_name || options.prompt || !options.pairs.empty())
    throw UsageError("prompts and pairs are made of text; leave them out beside token ids");
  check_embedding(model, options);
  check_ids(ids, {.what = "text",
                  .longest = model.longest,
                  .vocabulary = model.folder.model->facts().vocabulary_read(),
                  .may_be_empty = false});
  std::vector<TextTokens> sentences;
  for (std::vector<int32_t>& one : ids) sentences.push_back({.ids = std::move(one)});
  return vectors_of(model, sentences, 0, options);
}

double cosine(ConstMatrixView rows, int64_t i, int64_t j) {
  return similarity_of(rows, i, j, Similarity::kCosine);
}

double similarity_of(ConstMatrixView rows, int64_t i, int64_t j, Similarity kind) {
  for (const int64_t row : {i, j}) {
    if (row < 0 || row >= rows.rows)
      throw UsageError(fmt::format("cosine: there is no row {}; there are {}", row, rows.rows));
    require_finite_rows(rows, row, row + 1, "cosine");
  }
  return similarity_of_rows(row_of(rows, i), row_of(rows, j), kind);
}

Tensor similarities(ConstMatrixView queries, ConstMatrixView rows, Similarity kind) {
  require_comparable(queries, rows, "similarities");
  if (queries.rows == 0 || rows.rows == 0) return Tensor(queries.rows, rows.rows);
  return Similarities(queries, rows, kind).of_queries(0, queries.rows);
}

std::vector<std::vector<Neighbour>> nearest_rows(ConstMatrixView queries, ConstMatrixView rows, int64_t count,
                                                 Similarity kind) {
  if (count < 1) throw UsageError(fmt::format("nearest rows: expected at least 1, got {}", count));
  require_comparable(queries, rows, "nearest rows");
  std::vector<std::vector<Neighbour>> nearest(static_cast<size_t>(queries.rows));
  const int64_t kept = std::min(count, rows.rows);
  if (kept == 0 || queries.rows == 0) return nearest;
  const Similarities similarities(queries, rows, kind);
  constexpr int64_t kQueriesAtOnce = 256;  // bounds the memory of the similarities
  for (int64_t begin = 0; begin < queries.rows; begin += kQueriesAtOnce) {
    const int64_t here = std::min(kQueriesAtOnce, queries.rows - begin);
    const Tensor found = similarities.of_queries(begin, begin + here);
    parallel_for(here, [&](int64_t q) {
      const float* const of_query = found.view().row(q);
      std::vector<Neighbour> all(static_cast<size_t>(rows.rows));
      for (size_t i = 0; i < all.size(); ++i) all[i] = {static_cast<int64_t>(i), of_query[i]};
      std::partial_sort(all.begin(), all.begin() + kept, all.end(),
                        [](const Neighbour& a, const Neighbour& b) {
                          return a.similarity != b.similarity ? a.similarity > b.similarity : a.row < b.row;
                        });
      all.resize(static_cast<size_t>(kept));
      nearest[static_cast<size_t>(begin + q)] = std::move(all);
    });
  }
  return nearest;
}

}  // namespace mh
