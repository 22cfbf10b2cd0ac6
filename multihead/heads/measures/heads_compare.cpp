#include "multihead/heads/measures/heads_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/measures/circuit_weights.h"
#include "multihead/heads/measures/packed_weights.h"
#include "multihead/heads/measures/weight_divergence.h"
#include "multihead/io/check_option.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh {
namespace {

using FoldSums = std::array<double, kSimilarityFolds>;

/// What the weights of one model are on a batch.
class KeptWeights final : public CorpusObserver {
 public:
  KeptWeights(const std::vector<ComparedAttention>& attentions, uint64_t seed, int64_t most_bytes) {
    for (auto& [kind, of_kind] : by_kind(attentions))
      kinds_.emplace(kind, PackedWeights(std::move(of_kind), seed, most_bytes));
  }

  bool wants_weights(const Model::Attention&) const override { return true; }
  void weights(const BatchWeights& batch) override {
    kinds_.at(batch.attention.place.kind).add(batch, first_);
  }

  /// The number of the batch's first sentence in the corpus.
  void begin_at(int64_t first) { first_ = first; }
  const std::map<AttentionKind, PackedWeights>& kinds() const { return kinds_; }

 private:
  std::map<AttentionKind, PackedWeights> kinds_;
  int64_t first_ = 0;
};

/// Of one head, summed over the queries of each fold of sentences.
struct HeadSums {
  FoldSums before{}, after{}, real{}, null{};
};

class Comparison {
 public:
  Comparison(const ModelFolder& before, const ModelFolder& after, const CompareOptions& options)
      : before_(before),
        after_(after),
        options_(options),
        of_before_(compared_attentions(*before.model), options.seed, options.most_bytes),
        // Other permutations: those of two equal heads must not be equal, too.
        of_after_(compared_attentions(*after.model), ~options.seed, options.most_bytes) {
    for (const auto& [kind, packed] : of_before_.kinds()) {
      sums_[kind].resize(static_cast<size_t>(packed.heads()));
      most_heads_ = std::max(most_heads_, packed.heads());
    }
  }

  CorpusRead read(HeadsCorpus& corpus) {
    return read_blocks(before_, corpus, options_.observe,
                       [&](const CorpusBlock& block, const ObserveOptions& observe) {
                         for (size_t begin = 0, end = 0; begin < block.source.ids.size(); begin = end) {
                           end = end_of_batch(block, begin);
                           add_batch(block, begin, end, observe);
                           if (observe.progress) observe.progress(static_cast<int64_t>(end));
                         }
                       });
  }

  std::vector<ChangedHead> heads() const {
    std::vector<ChangedHead> all;
    for (const auto& [kind, packed] : of_before_.kinds()) {
      const FoldSums& queries = queries_.at(kind);
      double count = 0;
      for (const double here : queries) count += here;
      if (count == 0) continue;
      size_t number = 0;
      for (const ComparedAttention& attention : packed.attentions()) {
        for (int h = 0; h < attention.heads; ++h)
          all.push_back(changed(attention.name, h, sums_.at(kind)[number++], queries, count));
      }
    }
    return all;
  }

 private:
  /// As many sentences as have no more tokens than a batch may, and whose weights fit, but at least one.
  size_t end_of_batch(const CorpusBlock& block, size_t begin) const {
    int64_t tokens = 0;
    size_t end = begin;
    for (; end < block.source.ids.size(); ++end) {
      tokens += std::ssize(block.source.ids[end]);
      if (!block.target.ids.empty()) tokens += std::ssize(block.target.ids[end]) + 1;
      if (end == begin) continue;
      if (tokens > options_.observe.observe.max_batch_tokens ||
          compared_queries_step(tokens, tokens, most_heads_, options_.most_bytes) > 1)
        break;
    }
    return end;
  }

  void add_batch(const CorpusBlock& block, size_t begin, size_t end, ObserveOptions observe) {
    const auto part = [&](const auto& list) {
      return list.empty() ? std::span(list) : std::span(list).subspan(begin, end - begin);
    };
    observe.max_batch_tokens = INT32_MAX;  // they are one batch
    observe.progress = nullptr;
    observe.source_types = part(observe.source_types);
    observe.numbers = part(observe.numbers);
    for (const auto& [folder, kept] : {std::pair(&before_, &of_before_), {&after_, &of_after_}}) {
      kept->begin_at(block.first + static_cast<int64_t>(begin));
      CorpusObserver* const observers[] = {kept};
      observe_corpus(*folder->model, part(block.source.ids), part(block.target.ids), observers, observe);
    }
    for (const auto& [kind, packed] : of_before_.kinds()) add_kind(kind, packed, of_after_.kinds().at(kind));
  }

  void add_kind(AttentionKind kind, const PackedWeights& before, const PackedWeights& after) {
    FoldSums& queries = queries_[kind];
    for (const PackedWeights::Sentence& sentence : before.sentences())
      queries[fold_of(sentence)] += static_cast<double>(sentence.queries);
    std::vector<HeadSums>& sums = sums_[kind];
    parallel_for(std::ssize(sums), [&](int64_t head) {
      for (const PackedWeights::Sentence& sentence : before.sentences())
        add_sentence(before, after, static_cast<int>(head), sentence, sums[static_cast<size_t>(head)]);
    });
  }

  static void add_sentence(const PackedWeights& before, const PackedWeights& after, int head,
                           const PackedWeights::Sentence& sentence, HeadSums& sums) {
    struct Entropies {
      double p = 0, q = 0, both = 0;
      void add(const float* of_p, const float* of_q, int64_t cells) {
        p += entropy_of_both(of_p, of_p, cells);
        q += entropy_of_both(of_q, of_q, cells);
        both += entropy_of_both(of_p, of_q, cells);
      }
      double divergence() const { return divergence_of(both, p, q); }
    } real, null;
    for_parts(sentence.cells, [&](int64_t begin, int64_t cells) {
      real.add(before.weights(head, sentence) + begin, after.weights(head, sentence) + begin, cells);
      null.add(before.permuted(head, sentence) + begin, after.permuted(head, sentence) + begin, cells);
    });
    const size_t fold = fold_of(sentence);
    sums.before[fold] += real.p;
    sums.after[fold] += real.q;
    sums.real[fold] += real.divergence();
    sums.null[fold] += null.divergence();
  }

  static ChangedHead changed(const std::string& attention, int head, const HeadSums& sums,
                             const FoldSums& queries, double count) {
    double before = 0, after = 0, null = 0;
    for (size_t f = 0; f < kSimilarityFolds; ++f)
      before += sums.before[f], after += sums.after[f], null += sums.null[f];
    ChangedHead found{.attention = attention,
                      .head = head,
                      .entropy_before = before / count,
                      .entropy_after = after / count,
                      .divergence = jackknife(sums.real, queries),
                      .null_divergence = jackknife(sums.null, queries)};
    if (null > 0) found.ratio = jackknife(sums.real, sums.null);
    return found;
  }

  const ModelFolder &before_, &after_;
  const CompareOptions& options_;
  KeptWeights of_before_, of_after_;
  int most_heads_ = 1;
  std::map<AttentionKind, FoldSums> queries_;
  std::map<AttentionKind, std::vector<HeadSums>> sums_;
};

/// W = left right^T, [d_model, d_head] both.
struct HeadProduct {
  const DoubleMatrix &left, &right;
};

/// <W, V> = sum of all (W.left^T V.left) * (W.right^T V.right), element by element: products of d_head columns, none of d_model.
double inner(const HeadProduct& w, const HeadProduct& v) {
  const DoubleMatrix lefts = product(transposed(w.left.view()).view(), v.left.view()),
                     rights = product(transposed(w.right.view()).view(), v.right.view());
  double sum = 0;
  for (int64_t i = 0; i < lefts.size(); ++i) sum += lefts.data()[i] * rights.data()[i];
  return sum;
}

/// ||V - W|| / ||W||.
std::optional<double> change_of(const HeadProduct& w, const HeadProduct& v) {
  const double before = inner(w, w);
  if (before <= 0) return std::nullopt;
  return std::sqrt(std::max(0.0, before + inner(v, v) - 2 * inner(w, v)) / before);
}

void add_weight_changes(const ModelFolder& before, const ModelFolder& after,
                        std::vector<ChangedHead>& heads) {
  const CircuitModel first(*before.model), second(*after.model);
  std::string attention;
  CircuitWeights of_first, of_second;
  bool has_matrices = false;
  for (ChangedHead& head : heads) {
    if (head.attention != attention) {
      attention = head.attention;
      try {
        of_first = first.weights(attention);
        of_second = second.weights(attention);
        has_matrices = true;
      } catch (const UsageError&) {
        has_matrices = false;
      }
    }
    if (!has_matrices) continue;
    const auto h = static_cast<size_t>(head.head);
    const size_t k = h * of_first.keys.size() / of_first.queries.size(),
                 v = h * of_first.values.size() / of_first.queries.size();
    head.qk_change =
        change_of({of_first.queries[h], of_first.keys[k]}, {of_second.queries[h], of_second.keys[k]});
    const DoubleMatrix out = transposed(of_first.outputs[h].view()),
                       out_after = transposed(of_second.outputs[h].view());
    head.ov_change = change_of({of_first.values[v], out}, {of_second.values[v], out_after});
  }
}

[[noreturn]] void refuse(const ModelFolder& before, const ModelFolder& after, const std::string& what) {
  throw UsageError(fmt::format("{} and {} {}; compare a model with one that was trained from it",
                               before.path.string(), after.path.string(), what));
}

void check_alike(const ModelFolder& before, const ModelFolder& after) {
  const std::vector<ComparedAttention> a = compared_attentions(*before.model),
                                       b = compared_attentions(*after.model);
  const bool same =
      std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
        return one.name == other.name && one.heads == other.heads && one.key_heads == other.key_heads;
      });
  if (!same) refuse(before, after, "have not the same heads in the same attentions");
  const ModelFacts of_a = before.model->facts(), of_b = after.model->facts();
  if (of_a.vocabulary_read() != of_b.vocabulary_read() || of_a.vocabulary != of_b.vocabulary)
    refuse(before, after, "have vocabularies of other sizes");
  for (const auto& [one, other] : {std::pair(&before.tokenizer, &after.tokenizer),
                                   {&before.target_tokenizer, &after.target_tokenizer}}) {
    if (one->has_value() && other->has_value() && (*one)->files() != (*other)->files())
      refuse(before, after, "have other tokenizers");
  }
}

}  // namespace

CompareReport heads_compare(const ModelFolder& before, const ModelFolder& after, HeadsCorpus& corpus,
                            const CompareOptions& options) {
  check_option("most_bytes", options.most_bytes, {.low = 1});
  check_alike(before, after);
  Comparison comparison(before, after, options);
  CompareReport report{.read = comparison.read(corpus), .seed = options.seed, .after = after.path.string()};
  report.heads = comparison.heads();
  add_weight_changes(before, after, report.heads);
  return report;
}

}  // namespace mh
