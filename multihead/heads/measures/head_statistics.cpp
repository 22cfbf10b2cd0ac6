#include "multihead/heads/measures/head_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/kernels/attention_rows.h"

namespace mh {
namespace {

constexpr int kReach = HeadFigures::kReach;

/// Pairs g < h are numbered row by row.
size_t pair_count(int heads) {
  return static_cast<size_t>(heads) * static_cast<size_t>(std::max(heads - 1, 0)) / 2;
}

}  // namespace

HeadStatistics::Sums::Sums(int heads_of)
    : heads(heads_of),
      of_head(static_cast<size_t>(heads_of)),
      cosine(pair_count(heads_of)),
      divergence(pair_count(heads_of)) {}

void HeadStatistics::HeadSums::add(const HeadSums& other) {
  entropy += other.entropy;
  entropy_share += other.entropy_share;
  distance += other.distance;
  on_end += other.on_end;
  on_first += other.on_first;
  on_separators += other.on_separators;
  for (size_t o = 0; o < at_offset.size(); ++o) {
    at_offset[o] += other.at_offset[o];
    most_at_offset[o] += other.most_at_offset[o];
  }
}

void HeadStatistics::Sums::add(const Sums& other) {
  sequences += other.sequences;
  queries += other.queries;
  seeing_many += other.seeing_many;
  for (size_t o = 0; o < seeing_offset.size(); ++o) seeing_offset[o] += other.seeing_offset[o];
  for (size_t h = 0; h < of_head.size(); ++h) of_head[h].add(other.of_head[h]);
  for (size_t p = 0; p < cosine.size(); ++p) {
    cosine[p] += other.cosine[p];
    divergence[p] += other.divergence[p];
  }
}

HeadStatistics::Sums HeadStatistics::sums_of(AttentionKind kind, const BatchWeights& batch, int s) const {
  const bool causal = kind == AttentionKind::kDecoderSelf;
  const KeysSeen seen = causal ? KeysSeen::kEarlier : KeysSeen::kAll;
  const int heads = batch.heads();
  const int64_t queries = batch.matrix(s, 0).rows, keys = batch.matrix(s, 0).cols;
  Sums sums(heads);
  sums.sequences = 1;
  sums.queries = queries;
  const auto visible = [&](int64_t i) { return causal ? std::min(i + 1, keys) : keys; };
  std::vector<double> largest_entropies;  // of the queries
  for (int64_t i = 0; i < queries; ++i) {
    largest_entropies.push_back(std::log(static_cast<double>(visible(i))));
    if (visible(i) > 1) ++sums.seeing_many;
    for (int o = -kReach; o <= kReach; ++o) {
      if (i + o >= 0 && i + o < visible(i)) ++sums.seeing_offset[static_cast<size_t>(o + kReach)];
    }
  }
  const std::vector<int32_t> separators =
      block_ == nullptr
          ? std::vector<int32_t>()
          : block_->separators(kind, static_cast<size_t>(batch.sentences[static_cast<size_t>(s)]));

  std::vector<AttentionRow> rows(static_cast<size_t>(heads * queries));
  for (int h = 0; h < heads; ++h) {
    const ConstMatrixView a = batch.matrix(s, h);
    HeadSums& head = sums.of_head[static_cast<size_t>(h)];
    AttentionRow* of_head = rows.data() + h * queries;
    describe_rows(a, seen, of_head);
    for (int64_t i = 0; i < queries; ++i) {
      const float* row = a.row(i);
      const int64_t keys_seen = visible(i);
      if (keys_seen == 0) continue;
      const AttentionRow& figures = of_head[i];
      for (int64_t j = std::max<int64_t>(0, i - kReach); j <= std::min(i + kReach, keys_seen - 1); ++j) {
        head.at_offset[static_cast<size_t>(j - i + kReach)] += static_cast<double>(row[j]);
      }
      if (std::abs(figures.most - i) <= kReach)
        ++head.most_at_offset[static_cast<size_t>(figures.most - i + kReach)];
      head.on_end += static_cast<double>(row[causal ? 0 : keys - 1]);
      head.on_first += static_cast<double>(row[0]);
      for (const int32_t key : separators) head.on_separators += static_cast<double>(row[key]);
      head.entropy += static_cast<double>(figures.entropy);
      head.distance += static_cast<double>(figures.distance);
      if (keys_seen > 1)
        head.entropy_share +=
            static_cast<double>(figures.entropy) / largest_entropies[static_cast<size_t>(i)];
    }
  }
  if (compare_ == Compare::kHeadsOfLayer) compare_heads(batch, s, seen, rows, sums);
  return sums;
}

void HeadStatistics::compare_heads(const BatchWeights& batch, int s, KeysSeen seen,
                                   std::span<const AttentionRow> rows, Sums& sums) {
  const int heads = batch.heads();
  const auto queries = static_cast<size_t>(sums.queries);
  std::vector<double> entropies, squares;
  for (size_t h = 0; h < static_cast<size_t>(heads); ++h) {
    double entropy = 0, square = 0;
    for (const AttentionRow& row : rows.subspan(h * queries, queries)) {
      entropy += static_cast<double>(row.entropy);
      square += static_cast<double>(row.squares);
    }
    entropies.push_back(entropy);
    squares.push_back(square);
  }
  size_t pair = 0;
  for (int g = 0; g < heads; ++g) {
    for (int h = g + 1; h < heads; ++h, ++pair) {
      const ConstMatrixView a = batch.matrix(s, g), b = batch.matrix(s, h);
      const auto of_g = static_cast<size_t>(g), of_h = static_cast<size_t>(h);
      // JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2, not below 0 but for rounding.
      sums.divergence[pair] =
          std::max(0.0, mixed_entropy(a, b, seen) - 0.5 * (entropies[of_g] + entropies[of_h]));
      double product = 0;
      for (int64_t i = 0; i < a.rows; ++i) {
        for (int64_t j = 0; j < a.cols; ++j)
          product += static_cast<double>(a(i, j)) * static_cast<double>(b(i, j));
      }
      const double norms = std::sqrt(squares[of_g] * squares[of_h]);
      sums.cosine[pair] = norms > 0 ? product / norms : 0;
    }
  }
}

void HeadStatistics::weights(const BatchWeights& batch) {
  const AttentionPlace place = batch.attention.place;
  const Key key{place.kind, place.layer};
  const auto [found, is_new] = sums_.try_emplace(key, batch.heads());
  if (is_new) names_.emplace(key, batch.attention.name);
  Sums& sums = found->second;
  MH_ASSERT(sums.heads == batch.heads());

  std::vector<Sums> parts(static_cast<size_t>(batch.sequences()));
  parallel_for(batch.sequences(), [&](int64_t s) {
    parts[static_cast<size_t>(s)] = sums_of(place.kind, batch, static_cast<int>(s));
  });
  for (const Sums& part : parts) sums.add(part);  // in order: the same bits however many threads
}

std::vector<HeadSimilarity> HeadStatistics::similarities() const {
  std::vector<HeadSimilarity> all;
  for (const auto& [key, sums] : sums_) {
    const auto heads = static_cast<size_t>(sums.heads);
    HeadSimilarity& matrix = all.emplace_back();
    matrix.attention = names_.at(key);
    matrix.heads = sums.heads;
    matrix.cosine.assign(heads * heads, 1.0);
    matrix.divergence.assign(heads * heads, 0.0);
    size_t pair = 0;
    for (size_t g = 0; g < heads; ++g) {
      for (size_t h = g + 1; h < heads; ++h, ++pair) {
        matrix.cosine[g * heads + h] = matrix.cosine[h * heads + g] =
            sums.cosine[pair] / static_cast<double>(std::max<int64_t>(sums.sequences, 1));
        matrix.divergence[g * heads + h] = matrix.divergence[h * heads + g] =
            sums.divergence[pair] / static_cast<double>(std::max<int64_t>(sums.queries, 1));
      }
    }
  }
  return all;
}

std::vector<HeadFigures> HeadStatistics::heads() const {
  const std::vector<HeadSimilarity> similar = similarities();
  std::vector<HeadFigures> all;
  size_t attention = 0;
  for (const auto& [key, sums] : sums_) {
    const HeadSimilarity& like = similar[attention++];
    const auto heads = static_cast<size_t>(sums.heads);
    const auto queries = static_cast<double>(std::max<int64_t>(sums.queries, 1));
    for (size_t h = 0; h < heads; ++h) {
      const HeadSums& of = sums.of_head[h];
      HeadFigures& head = all.emplace_back();
      head.attention = like.attention;
      head.place = {.kind = key.first, .layer = key.second};
      head.head = static_cast<int>(h);
      head.queries = sums.queries;
      head.entropy = of.entropy / queries;
      head.entropy_share = of.entropy_share / static_cast<double>(std::max<int64_t>(sums.seeing_many, 1));
      head.distance = of.distance / queries;
      head.on_end = of.on_end / queries;
      head.on_first = of.on_first / queries;
      head.on_separators = of.on_separators / queries;
      for (size_t o = 0; o < HeadFigures::kOffsets; ++o) {
        head.at_offset[o] = of.at_offset[o] / queries;
        head.most_at_offset[o] = static_cast<double>(of.most_at_offset[o]) /
                                 static_cast<double>(std::max<int64_t>(sums.seeing_offset[o], 1));
      }
      if (heads < 2 || compare_ == Compare::kNothing) continue;
      double cosine = 0, divergence = 0;
      for (size_t g = 0; g < heads; ++g) {
        if (g == h) continue;
        cosine += like.cosine[h * heads + g];
        divergence += like.divergence[h * heads + g];
      }
      head.cosine = cosine / static_cast<double>(heads - 1);
      head.divergence = divergence / static_cast<double>(heads - 1);
    }
  }
  return all;
}

}  // namespace mh
