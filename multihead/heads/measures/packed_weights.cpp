#include "multihead/heads/measures/packed_weights.h"

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/base/thread_pool.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

constexpr int64_t kWholeVectors = 16;  // floats of the widest vector

}  // namespace

std::vector<ComparedAttention> compared_attentions(const Model& model) {
  std::vector<ComparedAttention> all;
  for (const Model::Attention& named : model.attentions()) {
    const int key_heads = model.attention(named.name).geometry().key_heads;
    all.push_back({.name = named.name,
                   .place = named.place,
                   .heads = named.heads,
                   .key_heads = key_heads > 0 ? key_heads : named.heads,
                   .mask = model.mask(named.name)});
  }
  return all;
}

std::map<AttentionKind, std::vector<ComparedAttention>> by_kind(
    const std::vector<ComparedAttention>& attentions) {
  std::map<AttentionKind, std::vector<ComparedAttention>> kinds;
  for (const ComparedAttention& attention : attentions) kinds[attention.place.kind].push_back(attention);
  for (auto& [kind, of_kind] : kinds) {
    std::sort(of_kind.begin(), of_kind.end(),
              [](const auto& a, const auto& b) { return a.place.layer < b.place.layer; });
  }
  return kinds;
}

uint64_t permutation_seed(uint64_t seed, int64_t sentence, AttentionPlace place, int head) {
  const auto of_sentence = static_cast<uint64_t>(sentence);
  const PhiloxCounter mixed =
      philox({static_cast<uint32_t>(of_sentence), static_cast<uint32_t>(of_sentence >> 32),
              static_cast<uint32_t>(place.layer) * 4 + static_cast<uint32_t>(place.kind),
              static_cast<uint32_t>(head)},
             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{mixed[1]} << 32 | mixed[0];
}

int64_t compared_queries_step(int64_t queries, int64_t keys, int heads, int64_t most_bytes) {
  const int64_t bytes = queries * keys * heads * 2 * static_cast<int64_t>(sizeof(float));
  return std::max<int64_t>(1, (bytes + most_bytes - 1) / most_bytes);
}

PackedWeights::PackedWeights(std::vector<ComparedAttention> attentions, uint64_t seed, int64_t most_bytes)
    : attentions_(std::move(attentions)), seed_(seed), most_bytes_(most_bytes) {
  first_head_.push_back(0);
  for (const ComparedAttention& attention : attentions_)
    first_head_.push_back(first_head_.back() + attention.heads);
}

void PackedWeights::lay_out(const BatchWeights& batch, int64_t first) {
  sentences_.clear();
  rows_.assign(static_cast<size_t>(batch.sequences()), {});
  cells_ = 0;
  for (int s = 0; s < batch.sequences(); ++s) {
    const ConstMatrixView shape = batch.matrix(s, 0);
    Sentence& sentence = sentences_.emplace_back(
        Sentence{.number = first + batch.sentences[static_cast<size_t>(s)], .begin = cells_});
    const int64_t step = compared_queries_step(shape.rows, shape.cols, heads(), most_bytes_);
    for (int64_t i = 0; i < shape.rows; i += step) {
      int64_t begin = shape.cols, end = 0;
      for (const ComparedAttention& attention : attentions_) {
        const Mask::Range seen = attention.mask.visible(i, shape.rows, shape.cols);
        begin = std::min(begin, seen.begin);
        end = std::max(end, seen.end);
      }
      rows_[static_cast<size_t>(s)].push_back({.query = i, .begin = begin, .end = end, .cell = cells_});
      cells_ += end - begin;
      ++sentence.queries;
    }
    cells_ = (cells_ + kWholeVectors - 1) / kWholeVectors * kWholeVectors;
    sentence.cells = cells_ - sentence.begin;
  }
  weights_.assign(static_cast<size_t>(heads() * cells_), 0);
  permuted_.assign(static_cast<size_t>(heads() * cells_), 0);
}

bool PackedWeights::add(const BatchWeights& batch, int64_t first) {
  if (arrived_ == 0) lay_out(batch, first);
  size_t a = 0;
  while (a < attentions_.size() && attentions_[a].place != batch.attention.place) ++a;
  MH_ASSERT(a < attentions_.size() && batch.heads() == attentions_[a].heads);
  const AttentionPlace place = batch.attention.place;
  const auto heads_here = static_cast<int64_t>(batch.heads());
  parallel_for(batch.sequences() * heads_here, [&](int64_t task) {
    const auto s = static_cast<size_t>(task / heads_here);
    const auto h = static_cast<int>(task % heads_here);
    const ConstMatrixView from = batch.matrix(static_cast<int>(s), h);
    const int64_t to = (first_head_[a] + h) * cells_;
    const uint64_t seed = permutation_seed(seed_, sentences_[s].number, place, h);
    for (const Row& row : rows_[s]) {
      std::copy(from.row(row.query) + row.begin, from.row(row.query) + row.end,
                weights_.data() + to + row.cell);
      const Mask::Range seen = attentions_[a].mask.visible(row.query, from.rows, from.cols);
      if (seen.begin == seen.end) continue;
      const std::span<float> permuted(permuted_.data() + to + row.cell + (seen.begin - row.begin),
                                      static_cast<size_t>(seen.end - seen.begin));
      std::copy(from.row(row.query) + seen.begin, from.row(row.query) + seen.end, permuted.begin());
      Random random(seed, static_cast<uint64_t>(row.query));
      random.shuffle(permuted);
    }
  });
  if (++arrived_ < attentions_.size()) return false;
  arrived_ = 0;
  return true;
}

}  // namespace mh
