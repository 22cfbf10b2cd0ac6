#include "multihead/heads/measures/word_alignment.h"

#include <algorithm>
#include <set>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/sites/words.h"
#include "multihead/nn/attention_place.h"

namespace mh {
namespace {

using Links = std::set<std::pair<int32_t, int32_t>>;

Links links_of(const Alignment& alignment) {
  return {alignment.begin(), alignment.end()};
}

Tensor mean_of_heads(const BatchWeights& batch, int s) {
  const ConstMatrixView first = batch.matrix(s, 0);
  Tensor mean(first.rows, first.cols);
  for (int h = 0; h < batch.heads(); ++h) {
    const ConstMatrixView of_head = batch.matrix(s, h);
    for (int64_t i = 0; i < mean.rows(); ++i) {
      for (int64_t j = 0; j < mean.cols(); ++j)
        mean(i, j) += of_head(i, j) / static_cast<float>(batch.heads());
    }
  }
  return mean;
}

}  // namespace

void AlignmentScore::add(std::span<const int32_t> source_of, const Alignment& alignment) {
  const Links links = links_of(alignment);
  gold += std::ssize(links);
  std::set<int32_t> aligned;
  for (const auto& link : links) aligned.insert(link.second);
  support += std::ssize(aligned);
  for (size_t t = 0; t < source_of.size(); ++t) {
    if (source_of[t] < 0) continue;
    ++made;
    if (!links.contains({source_of[t], static_cast<int32_t>(t)})) continue;
    ++right;
    ++found;
  }
}

std::vector<int32_t> strongest_sources(ConstMatrixView weights, const WordOfToken& word_of_query,
                                       int32_t query_words, const WordOfToken& word_of_key) {
  const auto key_words = static_cast<int32_t>(words_read(word_of_key));
  // All that is no word counts as one more key: a word that looks there most goes with nothing.
  WordOfToken keys = word_of_key;
  std::replace(keys.begin(), keys.end(), -1, key_words);
  const int64_t read = words_read(word_of_query);
  const Tensor merged = merge_to_words(weights, word_of_query, read, keys, int64_t{key_words} + 1);
  std::vector<int32_t> found(static_cast<size_t>(query_words), -1);
  for (int64_t t = 0; t < read; ++t) {
    int32_t best = -1;
    float most = merged(t, key_words);
    for (int32_t s = 0; s < key_words; ++s) {
      if (merged(t, s) > most) most = merged(t, s), best = s;
    }
    found[static_cast<size_t>(t)] = best;
  }
  return found;
}

WordOfToken words_of_queries(const WordOfToken& target_words, AlignedQuery query) {
  WordOfToken words = target_words;
  // Row 0 has read the start token; the last one predicts the end token.
  words.insert(query == AlignedQuery::kReads ? words.begin() : words.end(), -1);
  return words;
}

void AlignmentScorer::begin(const CorpusBlock& block) {
  gold_ = &block.alignments;
  for (size_t i = 0; i < gold_->alignments.size(); ++i) {
    ++sentences_of_sizes_[{gold_->source_sizes[i], gold_->target_sizes[i]}];
    const Links links = links_of(gold_->alignments[i]);
    links_ += std::ssize(links);
    std::set<int32_t> linked;
    for (const auto& [source, target] : links) {
      ++links_at_offset_[source - target];
      linked.insert(target);
    }
    linked_words_ += std::ssize(linked);
  }
}

bool AlignmentScorer::wants_weights(const Model::Attention& attention) const {
  return gold_ != nullptr && !gold_->empty() && attention.place.kind == AttentionKind::kCross;
}

void AlignmentScorer::weights(const BatchWeights& batch) {
  std::vector<AlignmentScore>& scores = scores_[batch.attention.place.layer];
  const int heads = batch.heads();
  if (scores.empty()) {
    for (int h = 0; h < heads + (heads > 1 ? 1 : 0); ++h) {
      for (const AlignedQuery query : {AlignedQuery::kPredicts, AlignedQuery::kReads}) {
        scores.push_back({.attention = batch.attention.name,
                          .head = h < heads ? h : AlignmentScore::kMeanOfHeads,
                          .query = query});
      }
    }
  }
  MH_ASSERT(scores.size() == 2 * static_cast<size_t>(heads + (heads > 1 ? 1 : 0)));

  const auto sequences = static_cast<size_t>(batch.sequences());
  std::vector<std::vector<std::vector<int32_t>>> found(sequences);  // [sequence][score][target word]
  parallel_for(batch.sequences(), [&](int64_t s) {
    const auto sentence = static_cast<size_t>(batch.sentences[static_cast<size_t>(s)]);
    const WordOfToken& target = gold_->target_words[sentence];
    const WordOfToken predicted = words_of_queries(target, AlignedQuery::kPredicts),
                      read = words_of_queries(target, AlignedQuery::kReads);
    const Tensor mean = mean_of_heads(batch, static_cast<int>(s));
    for (const AlignmentScore& score : scores) {
      found[static_cast<size_t>(s)].push_back(strongest_sources(
          score.head == AlignmentScore::kMeanOfHeads ? mean.view()
                                                     : batch.matrix(static_cast<int>(s), score.head),
          score.query == AlignedQuery::kPredicts ? predicted : read, gold_->target_sizes[sentence],
          gold_->source_words[sentence]));
    }
  });
  for (size_t s = 0; s < sequences; ++s) {
    const Alignment& gold = gold_->alignments[static_cast<size_t>(batch.sentences[s])];
    for (size_t i = 0; i < scores.size(); ++i) scores[i].add(found[s][i], gold);
  }
}

std::vector<AlignmentScore> AlignmentScorer::scores() const {
  std::vector<AlignmentScore> all;
  for (const auto& [layer, scores] : scores_) all.insert(all.end(), scores.begin(), scores.end());
  return all;
}

std::optional<AlignmentScore> AlignmentScorer::baseline() const {
  if (sentences_of_sizes_.empty()) return std::nullopt;
  std::map<int, int64_t> offsets = links_at_offset_;
  offsets.try_emplace(0, 0);
  std::vector<AlignmentScore> all;
  for (const auto& [offset, links] : offsets) {
    AlignmentScore& score = all.emplace_back();
    score.offset = offset;
    score.support = linked_words_;
    score.gold = links_;
    score.found = score.right = links;
    for (const auto& [sizes, sentences] :
         sentences_of_sizes_) {  // target words t with 0 <= t + offset < source words
      const int32_t first = std::max(0, -offset), last = std::min(sizes.second, sizes.first - offset);
      score.made += sentences * std::max(0, last - first);
    }
  }
  return best_aligner(all);
}

AlignmentScore best_aligner(std::span<const AlignmentScore> scores) {
  const AlignmentScore* best = nullptr;
  for (const AlignmentScore& score : scores) {
    if (score.head == AlignmentScore::kMeanOfHeads) continue;
    if (best == nullptr || score.error_rate() < best->error_rate()) best = &score;
  }
  MH_ASSERT(best != nullptr);
  return *best;
}

}  // namespace mh
