#include "multihead/heads/measures/head_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "multihead/base/thread_pool.h"

namespace mh {
namespace {

constexpr int kReach = HeadFigures::kReach;

double entropy_term(double p) {
  return p > 0 ? -p * std::log(p) : 0;
}

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

HeadStatistics::Sums HeadStatistics::sums_of(AttentionKind kind, const BatchWeights& batch, int s) {
  const bool causal = kind == AttentionKind::kDecoderSelf;
  const int heads = batch.heads();
  const int64_t queries = batch.matrix(s, 0).rows, keys = batch.matrix(s, 0).cols;
  Sums sums(heads);
  sums.sequences = 1;
  sums.queries = queries;
  const auto visible = [&](int64_t i) { return causal ? std::min(i + 1, keys) : keys; };
  for (int64_t i = 0; i < queries; ++i) {
    if (visible(i) > 1) ++sums.seeing_many;
    for (int o = -kReach; o <= kReach; ++o) {
      if (i + o >= 0 && i + o < visible(i)) ++sums.seeing_offset[static_cast<size_t>(o + kReach)];
    }
  }

  std::vector<double> row_entropies(static_cast<size_t>(heads * queries)),
      squares(static_cast<size_t>(heads));
  for (int h = 0; h < heads; ++h) {
    const ConstMatrixView a = batch.matrix(s, h);
    HeadSums& head = sums.of_head[static_cast<size_t>(h)];
    for (int64_t i = 0; i < queries; ++i) {
      const float* row = a.row(i);
      const int64_t seen = visible(i);
      double entropy = 0, distance = 0;
      int64_t most = 0;
      for (int64_t j = 0; j < seen; ++j) {
        const double weight = row[j];
        entropy += entropy_term(weight);
        distance += weight * static_cast<double>(std::abs(i - j));
        squares[static_cast<size_t>(h)] += weight * weight;
        if (row[j] > row[most]) most = j;
      }
      for (int64_t j = std::max<int64_t>(0, i - kReach); j <= std::min(i + kReach, seen - 1); ++j) {
        head.at_offset[static_cast<size_t>(j - i + kReach)] += row[j];
      }
      if (seen > 0 && std::abs(most - i) <= kReach)
        ++head.most_at_offset[static_cast<size_t>(most - i + kReach)];
      if (seen > 0) head.on_end += row[causal ? 0 : keys - 1];
      head.entropy += entropy;
      head.distance += distance;
      if (seen > 1) head.entropy_share += entropy / std::log(static_cast<double>(seen));
      row_entropies[static_cast<size_t>(h * queries + i)] = entropy;
    }
  }

  size_t pair = 0;
  for (int g = 0; g < heads; ++g) {
    const ConstMatrixView a = batch.matrix(s, g);
    for (int h = g + 1; h < heads; ++h, ++pair) {
      const ConstMatrixView b = batch.matrix(s, h);
      double product = 0, divergence = 0;
      for (int64_t i = 0; i < queries; ++i) {
        double mean_entropy = 0;
        for (int64_t j = 0; j < visible(i); ++j) {
          const double p = a(i, j), q = b(i, j);
          product += p * q;
          mean_entropy += entropy_term(0.5 * (p + q));
        }
        // JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2, not below 0 but for rounding.
        divergence +=
            std::max(0.0, mean_entropy - 0.5 * (row_entropies[static_cast<size_t>(g * queries + i)] +
                                                row_entropies[static_cast<size_t>(h * queries + i)]));
      }
      const double norms = std::sqrt(squares[static_cast<size_t>(g)] * squares[static_cast<size_t>(h)]);
      sums.cosine[pair] = norms > 0 ? product / norms : 0;
      sums.divergence[pair] = divergence;
    }
  }
  return sums;
}

void HeadStatistics::weights(const BatchWeights& batch) {
  const AttentionPlace place = attention_place(batch.attention);
  const Key key{place.kind, place.layer};
  const auto [found, is_new] = sums_.try_emplace(key, batch.heads());
  if (is_new) names_.emplace(key, batch.attention);
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
      head.head = static_cast<int>(h);
      head.queries = sums.queries;
      head.entropy = of.entropy / queries;
      head.entropy_share = of.entropy_share / static_cast<double>(std::max<int64_t>(sums.seeing_many, 1));
      head.distance = of.distance / queries;
      head.on_end = of.on_end / queries;
      for (size_t o = 0; o < HeadFigures::kOffsets; ++o) {
        head.at_offset[o] = of.at_offset[o] / queries;
        head.most_at_offset[o] = static_cast<double>(of.most_at_offset[o]) /
                                 static_cast<double>(std::max<int64_t>(sums.seeing_offset[o], 1));
      }
      if (heads < 2) continue;
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
