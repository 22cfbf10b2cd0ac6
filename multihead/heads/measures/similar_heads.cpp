#include "multihead/heads/measures/similar_heads.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/measures/weight_divergence.h"
#include "multihead/io/check_option.h"

namespace mh {
void SimilarHeadsObserver::PairSums::add(const PairSums& other) {
  pairs += other.pairs;
  for (size_t f = 0; f < kSimilarityFolds; ++f) {
    real[f] += other.real[f];
    null[f] += other.null[f];
  }
}

SimilarHeadsObserver::SimilarHeadsObserver(const std::vector<ComparedAttention>& attentions,
                                           const Options& options)
    : options_(options) {
  check_option("most_bytes", options.most_bytes, {.low = 1});
  for (auto& [kind, layers] : by_kind(attentions)) {
    const size_t count = layers.size();
    PackedWeights packed(std::move(layers), options.seed, options.most_bytes);
    const auto heads = static_cast<size_t>(packed.heads());
    Kind of{.packed = std::move(packed),
            .entropies = std::vector<double>(heads),
            .real = std::vector<double>(heads * heads),
            .null = std::vector<double>(heads * heads),
            .layer_pairs = {}};
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = a; b < count; ++b) of.layer_pairs.push_back(pairs_of(of.packed, a, b));
    }
    kinds_.emplace(kind, std::move(of));
  }
}

SimilarHeadsObserver::LayerPair SimilarHeadsObserver::pairs_of(const PackedWeights& heads, size_t a,
                                                               size_t b) {
  LayerPair layers{.a = a, .b = b};
  const auto key_head = [&](size_t layer, int h) {
    const ComparedAttention& attention = heads.attentions()[layer];
    return (h - heads.first_head(layer)) * attention.key_heads / attention.heads;
  };
  for (int g = heads.first_head(a); g < heads.first_head(a + 1); ++g) {
    for (int h = std::max(g + 1, heads.first_head(b)); h < heads.first_head(b + 1); ++h) {
      const bool share = a == b && key_head(a, g) == key_head(b, h);
      layers.pairs.push_back({.g = g, .h = h, .share_keys = share});
      ++(share ? layers.sharing : layers.others).pairs;
    }
  }
  return layers;
}

int64_t SimilarHeadsObserver::batch_tokens() const {
  int64_t tokens = 1;
  int most_heads = 1;
  for (const auto& [kind, of] : kinds_) most_heads = std::max(most_heads, of.packed.heads());
  // The sentences of a batch of N tokens have at most N^2 weights a head.
  while (compared_queries_step(tokens + 1, tokens + 1, most_heads, options_.most_bytes) == 1) ++tokens;
  return tokens;
}

void SimilarHeadsObserver::begin(const CorpusBlock& block) {
  first_ = block.first;
}

void SimilarHeadsObserver::weights(const BatchWeights& batch) {
  Kind& kind = kinds_.at(batch.attention.place.kind);
  if (kind.packed.add(batch, first_)) compare(kind);
}

void SimilarHeadsObserver::compare(Kind& kind) {
  const PackedWeights& packed = kind.packed;
  const auto heads = static_cast<size_t>(packed.heads());
  const auto sentences = packed.sentences();
  // As the entropies of mixtures are, so that equal heads have a divergence of exactly 0. [sentences, heads]
  std::vector<double> real(sentences.size() * heads), null(real.size());
  parallel_for(std::ssize(real), [&](int64_t task) {
    const auto& sentence = sentences[static_cast<size_t>(task) / heads];
    const int h = static_cast<int>(static_cast<size_t>(task) % heads);
    const float *of_head = packed.weights(h, sentence), *of_null = packed.permuted(h, sentence);
    for_parts(sentence.cells, [&](int64_t begin, int64_t cells) {
      real[static_cast<size_t>(task)] += entropy_of_both(of_head + begin, of_head + begin, cells);
      null[static_cast<size_t>(task)] += entropy_of_both(of_null + begin, of_null + begin, cells);
    });
  });
  for (size_t s = 0; s < sentences.size(); ++s) {
    kind.queries[fold_of(sentences[s])] += static_cast<double>(sentences[s].queries);
    for (size_t h = 0; h < heads; ++h) kind.entropies[h] += real[s * heads + h];
  }
  parallel_for(std::ssize(kind.layer_pairs),
               [&](int64_t pair) { compare(kind, kind.layer_pairs[static_cast<size_t>(pair)], real, null); });
}

void SimilarHeadsObserver::compare(Kind& kind, LayerPair& layers, const std::vector<double>& real_entropies,
                                   const std::vector<double>& null_entropies) {
  struct Mixed {
    double real = 0, null = 0;  // entropies of the mixtures, of a sentence
  };
  const PackedWeights& packed = kind.packed;
  std::vector<Mixed> mixed(layers.pairs.size());
  const auto heads = static_cast<size_t>(packed.heads());
  for (size_t s = 0; s < packed.sentences().size(); ++s) {
    const PackedWeights::Sentence& sentence = packed.sentences()[s];
    std::fill(mixed.begin(), mixed.end(), Mixed());
    for_parts(sentence.cells, [&](int64_t begin, int64_t cells) {
      for (size_t p = 0; p < mixed.size(); ++p)
        mixed[p].real += entropy_of_both(packed.weights(layers.pairs[p].g, sentence) + begin,
                                         packed.weights(layers.pairs[p].h, sentence) + begin, cells);
      for (size_t p = 0; p < mixed.size(); ++p)
        mixed[p].null += entropy_of_both(packed.permuted(layers.pairs[p].g, sentence) + begin,
                                         packed.permuted(layers.pairs[p].h, sentence) + begin, cells);
    });
    for (size_t p = 0; p < mixed.size(); ++p) {
      const HeadPair& pair = layers.pairs[p];
      const auto g = static_cast<size_t>(pair.g), h = static_cast<size_t>(pair.h);
      const auto divergence = [&](double of_both, const std::vector<double>& entropies) {
        return divergence_of(of_both, entropies[s * heads + g], entropies[s * heads + h]);
      };
      const double real = divergence(mixed[p].real, real_entropies),
                   null = divergence(mixed[p].null, null_entropies);
      kind.real[g * heads + h] += real;
      kind.null[g * heads + h] += null;
      PairSums& sums = pair.share_keys ? layers.sharing : layers.others;
      sums.real[fold_of(sentence)] += real;
      sums.null[fold_of(sentence)] += null;
    }
  }
}

PairsMean SimilarHeadsObserver::mean_of(const PairSums& sums, const Folds& queries) {
  Folds support = queries, difference{};
  double all_null = 0;
  for (size_t f = 0; f < kSimilarityFolds; ++f) {
    support[f] *= static_cast<double>(sums.pairs);
    difference[f] = sums.real[f] - sums.null[f];
    all_null += sums.null[f];
  }
  PairsMean mean{.pairs = sums.pairs,
                 .divergence = jackknife(sums.real, support),
                 .null_divergence = jackknife(sums.null, support),
                 .difference = jackknife(difference, support)};
  if (all_null > 0) mean.ratio = jackknife(sums.real, sums.null);
  return mean;
}

SharedKeysMean SimilarHeadsObserver::shared_keys_of(const PairSums& sharing, const PairSums& others,
                                                    const Folds& queries) {
  const auto pairs_sharing = static_cast<double>(sharing.pairs),
             other_pairs = static_cast<double>(others.pairs);
  Folds real{}, null{};
  for (size_t f = 0; f < kSimilarityFolds; ++f) {
    real[f] = others.real[f] / other_pairs - sharing.real[f] / pairs_sharing;
    null[f] = others.null[f] / other_pairs - sharing.null[f] / pairs_sharing;
  }
  return {.sharing = mean_of(sharing, queries),
          .others = mean_of(others, queries),
          .difference = jackknife(real, queries),
          .null_difference = jackknife(null, queries)};
}

ComparedHeads SimilarHeadsObserver::compared(AttentionKind kind, const Kind& of) {
  const PackedWeights& packed = of.packed;
  const auto heads = static_cast<size_t>(packed.heads());
  double queries = 0;
  for (const double here : of.queries) queries += here;
  ComparedHeads all{.kind = kind, .queries = static_cast<int64_t>(queries)};
  for (const ComparedAttention& attention : packed.attentions()) {
    for (int h = 0; h < attention.heads; ++h)
      all.heads.push_back({.attention = attention.name,
                           .layer = attention.place.layer,
                           .head = h,
                           .key_head = h * attention.key_heads / attention.heads,
                           .entropy = of.entropies[all.heads.size()] / queries});
  }
  all.divergence.assign(heads * heads, 0);
  all.null_divergence.assign(heads * heads, 0);
  for (size_t g = 0; g < heads; ++g) {
    for (size_t h = g + 1; h < heads; ++h) {
      all.divergence[g * heads + h] = all.divergence[h * heads + g] = of.real[g * heads + h] / queries;
      all.null_divergence[g * heads + h] = all.null_divergence[h * heads + g] =
          of.null[g * heads + h] / queries;
    }
  }

  std::vector<PairSums> to_others(packed.attentions().size());
  PairSums within, between, sharing,
      apart;  // apart: of a layer whose heads partly share keys, and not sharing
  for (const LayerPair& layers : of.layer_pairs) {
    if (layers.a != layers.b) {
      to_others[layers.a].add(layers.others);
      to_others[layers.b].add(layers.others);
      between.add(layers.others);
      continue;
    }
    ComparedLayer& layer = all.layers.emplace_back();
    layer.attention = packed.attentions()[layers.a].name;
    layer.layer = packed.attentions()[layers.a].place.layer;
    PairSums here = layers.sharing;
    here.add(layers.others);
    if (here.pairs > 0) layer.within = mean_of(here, of.queries);
    within.add(here);
    if (layers.sharing.pairs == 0 || layers.others.pairs == 0) continue;
    layer.shared_keys = shared_keys_of(layers.sharing, layers.others, of.queries);
    sharing.add(layers.sharing);
    apart.add(layers.others);
  }
  for (size_t l = 0; l < to_others.size(); ++l) {
    if (to_others[l].pairs > 0) all.layers[l].to_others = mean_of(to_others[l], of.queries);
  }
  if (within.pairs > 0) all.within_layers = mean_of(within, of.queries);
  if (between.pairs > 0) all.between_layers = mean_of(between, of.queries);
  if (sharing.pairs > 0) all.shared_keys = shared_keys_of(sharing, apart, of.queries);
  return all;
}

std::vector<ComparedHeads> SimilarHeadsObserver::kinds() const {
  std::vector<ComparedHeads> all;
  for (const auto& [kind, of] : kinds_) {
    if (std::any_of(of.queries.begin(), of.queries.end(), [](double queries) { return queries > 0; }))
      all.push_back(compared(kind, of));
  }
  return all;
}

}  // namespace mh
