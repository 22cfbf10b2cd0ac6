#include "multihead/heads/measures/head_roles.h"

#include <algorithm>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/sites/words.h"

namespace mh {
namespace {

/// The words of sentence i: of its tree, else of its text.
std::vector<Word> words_of_sentence(const HeadsText& text, size_t i) {
  return text.source_trees.empty() ? words_in(text.sources[i]) : text.source_trees[i];
}

/// Shares of one map, [T, T].
struct MapShares {
  double special = 0, neighbours = 0, own_text = 0;
};

AttentionPattern pattern_of(const MapShares& shares, bool pair) {
  if (shares.special >= 0.5) return AttentionPattern::kVertical;
  if (shares.neighbours >= 0.5) return AttentionPattern::kDiagonal;
  if (std::min(shares.special, shares.neighbours) >= 0.25 && shares.special + shares.neighbours >= 0.75)
    return AttentionPattern::kBoth;
  return pair && shares.own_text >= 0.8 ? AttentionPattern::kBlock : AttentionPattern::kHeterogeneous;
}

}  // namespace

std::string_view name_of(AttentionPattern pattern) {
  constexpr std::string_view kNames[] = {"vertical", "diagonal", "vertical+diagonal", "block",
                                         "heterogeneous"};
  return kNames[static_cast<size_t>(pattern)];
}

void WordCounts::add(const HeadsText& text) {
  for (size_t i = 0; i < text.sources.size(); ++i) {
    for (const Word& word : words_of_sentence(text, i)) ++counts_[word.form];
  }
}

int64_t WordCounts::of(const std::string& form) const {
  const auto found = counts_.find(form);
  return found == counts_.end() ? 0 : found->second;
}

std::optional<AttentionPattern> HeadRoles::pattern() const {
  const auto most = std::max_element(patterns.begin(), patterns.end());
  if (*most <= 0) return std::nullopt;
  return static_cast<AttentionPattern>(most - patterns.begin());
}

void HeadRoleObserver::begin(const CorpusBlock& block) {
  causal_ = block.causal;
  const auto count = static_cast<size_t>(block.sentences());
  sentences_.assign(count, {});
  parallel_for(block.sentences(), [&](int64_t sentence) {
    const auto s = static_cast<size_t>(sentence);
    Sentence& of = sentences_[s];
    const size_t tokens = block.source.ids[s].size();
    of.is_word.assign(tokens, 0);
    of.is_rarest.assign(tokens, 0);
    of.is_special.assign(tokens, 0);
    if (s < block.source.offsets.size()) {
      for (size_t i = 0; i < tokens; ++i) of.is_special[i] = block.source.offsets[s][i] == std::pair(0, 0);
    }
    if (std::find(of.is_special.begin(), of.is_special.end(), 1) == of.is_special.end()) of.is_special[0] = 1;
    if (!block.text.pairs.empty()) {  // the separator behind the first text ends it
      for (size_t i = 1; i + 1 < tokens && of.second_text == 0; ++i) {
        if (of.is_special[i]) of.second_text = static_cast<int64_t>(i) + 1;
      }
    }
    if (block.source.words.empty()) return;
    const std::vector<Word> words = words_of_sentence(block.text, s);
    const WordOfToken& word_of = block.source.words[s];
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (const int32_t word : word_of) {  // of the words that were not cut off
      if (word >= 0) fewest = std::min(fewest, counts_.of(words[static_cast<size_t>(word)].form));
    }
    for (size_t i = 0; i < tokens; ++i) {
      if (word_of[i] < 0) continue;
      of.is_word[i] = 1;
      of.is_rarest[i] = counts_.of(words[static_cast<size_t>(word_of[i])].form) == fewest;
      ++of.words;
      of.rarest += of.is_rarest[i];
    }
  });
}

HeadRoleObserver::Sums HeadRoleObserver::sums_of(AttentionKind kind, const BatchWeights& batch, int s) const {
  const Sentence& of = sentences_[static_cast<size_t>(batch.sentences[static_cast<size_t>(s)])];
  const bool source_keys = kind != AttentionKind::kDecoderSelf || causal_;
  const bool of_source = kind == AttentionKind::kEncoderSelf || causal_;  // the queries too
  Sums sums;
  sums.heads.resize(static_cast<size_t>(batch.heads()));
  const int64_t queries = batch.matrix(s, 0).rows, keys = batch.matrix(s, 0).cols;
  if (source_keys && of.rarest > 0) {
    for (int64_t i = 0; i < queries; ++i) {
      if (of_source && !of.is_word[static_cast<size_t>(i)]) continue;
      ++sums.queries;
      const int64_t seen = causal_ ? i + 1 : keys;
      sums.by_chance +=
          static_cast<double>(std::count(of.is_rarest.begin(), of.is_rarest.begin() + seen, 1)) /
          static_cast<double>(seen);
      for (int h = 0; h < batch.heads(); ++h) {
        const float* row = batch.matrix(s, h).row(i);
        const auto most = static_cast<size_t>(std::max_element(row, row + seen) - row);
        sums.heads[static_cast<size_t>(h)].on_rarest += of.is_rarest[most];
      }
    }
  }
  if (kind == AttentionKind::kCross || queries < kLeastTokensOfPattern) return sums;
  sums.maps = 1;
  for (int h = 0; h < batch.heads(); ++h) {
    const ConstMatrixView a = batch.matrix(s, h);
    MapShares shares;
    double on_words = 0, on_own = 0;
    for (int64_t i = 0; i < queries; ++i) {
      const float* row = a.row(i);
      for (int64_t j = 0; j < keys; ++j) {
        const auto weight = static_cast<double>(row[j]);
        const bool special = of_source ? of.is_special[static_cast<size_t>(j)] != 0 : j == 0;
        if (special) shares.special += weight;
        if (j == i - 1 || j == i + 1) shares.neighbours += weight;
        if (of.second_text > 0 && !special) {
          on_words += weight;
          if ((i < of.second_text) == (j < of.second_text)) on_own += weight;
        }
      }
    }
    shares.special /= static_cast<double>(queries);
    shares.neighbours /= static_cast<double>(queries);
    shares.own_text = on_words > 0 ? on_own / on_words : 0;
    ++sums.heads[static_cast<size_t>(h)]
          .patterns[static_cast<size_t>(pattern_of(shares, of.second_text > 0))];
  }
  return sums;
}

void HeadRoleObserver::weights(const BatchWeights& batch) {
  const AttentionPlace place = batch.attention.place;
  Sums& sums = sums_[{place.kind, place.layer}];
  sums.attention = batch.attention.name;
  sums.heads.resize(static_cast<size_t>(batch.heads()));
  std::vector<Sums> parts(static_cast<size_t>(batch.sequences()));
  parallel_for(batch.sequences(), [&](int64_t s) {
    parts[static_cast<size_t>(s)] = sums_of(place.kind, batch, static_cast<int>(s));
  });
  for (const Sums& part : parts) {
    sums.queries += part.queries;
    sums.maps += part.maps;
    sums.by_chance += part.by_chance;
    for (size_t h = 0; h < sums.heads.size(); ++h) {
      sums.heads[h].on_rarest += part.heads[h].on_rarest;
      for (size_t p = 0; p < kAttentionPatterns; ++p) sums.heads[h].patterns[p] += part.heads[h].patterns[p];
    }
  }
}

std::vector<HeadRoles> HeadRoleObserver::heads() const {
  std::vector<HeadRoles> all;
  for (const auto& [key, sums] : sums_) {
    for (size_t h = 0; h < sums.heads.size(); ++h) {
      HeadRoles& head = all.emplace_back();
      head.attention = sums.attention;
      head.head = static_cast<int>(h);
      if (sums.queries > 0) {
        head.on_rarest = static_cast<double>(sums.heads[h].on_rarest) / static_cast<double>(sums.queries);
        head.rarest_by_chance = sums.by_chance / static_cast<double>(sums.queries);
      }
      for (size_t p = 0; p < kAttentionPatterns && sums.maps > 0; ++p)
        head.patterns[p] = static_cast<double>(sums.heads[h].patterns[p]) / static_cast<double>(sums.maps);
    }
  }
  return all;
}

}  // namespace mh
