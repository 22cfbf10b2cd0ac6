#include "multihead/heads/measures/dependency_probe.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/measures/spanning_tree.h"
#include "multihead/heads/sites/words.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh {
namespace {

// The loss is convex, so that these decide only how soon it is near its minimum.
constexpr double kRate = 0.05, kMeanDecay = 0.9, kSquareDecay = 0.999, kEpsilon = 1e-8;

int root_of(const std::vector<Word>& tree) {
  for (size_t w = 0; w < tree.size(); ++w) {
    if (tree[w].head < 0) return static_cast<int>(w);
  }
  return -1;
}

}  // namespace

DependencyProbe::DependencyProbe(std::vector<Model::Attention> attentions)
    : attentions_(std::move(attentions)) {
  MH_ASSERT(!attentions_.empty());
  for (const Model::Attention& attention : attentions_) heads_ += static_cast<size_t>(attention.heads);
  for (std::vector<double>* each : {&weights_, &mean_, &square_}) each->resize(2 * heads_);
}

void DependencyProbe::begin(const CorpusBlock& block) {
  gold_ =
      attentions_[0].place.kind == AttentionKind::kEncoderSelf ? &block.encoder_trees : &block.decoder_trees;
}

bool DependencyProbe::wants_weights(const Model::Attention& attention) const {
  return gold_ != nullptr && !gold_->empty() &&
         std::any_of(attentions_.begin(), attentions_.end(),
                     [&](const Model::Attention& own) { return own.name == attention.name; });
}

void DependencyProbe::weights(const BatchWeights& batch) {
  if (batch.attention.name == attentions_.front().name) {
    batch_.assign(static_cast<size_t>(batch.sequences()), {});
    names_.clear();
  }
  for (int h = 0; h < batch.heads(); ++h) names_.push_back(batch.attention.name + "." + std::to_string(h));
  parallel_for(batch.sequences(), [&](int64_t sequence) {
    const auto s = static_cast<size_t>(sequence);
    const auto sentence = static_cast<size_t>(batch.sentences[s]);
    Features& features = batch_[s];
    features.tree = &gold_->trees[sentence];
    const WordOfToken& words = gold_->word_of_token[sentence];
    const int64_t size = features.size = words_read(words);
    for (int h = 0; h < batch.heads(); ++h) {
      const Tensor merged = merge_to_words(batch.matrix(static_cast<int>(s), h), words, size, words, size);
      std::vector<float> reads, read;
      for (int64_t i = 0; i < size; ++i) {
        for (int64_t j = 0; j < size; ++j) {
          reads.push_back(merged(j, i));
          read.push_back(merged(i, j));
        }
      }
      features.maps.push_back(std::move(reads));
      features.maps.push_back(std::move(read));
    }
  });
  if (batch.attention.name != attentions_.back().name) return;
  MH_ASSERT(names_.size() == heads_);
  if (use_ == Use::kLearn) {
    learn();
  } else {
    count();
  }
}

DoubleMatrix DependencyProbe::log_probabilities(const Features& sentence) const {
  const int64_t size = sentence.size;
  DoubleMatrix scores(size, size);
  for (size_t k = 0; k < sentence.maps.size(); ++k) {
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j)
        scores(i, j) +=
            weights_[k] * static_cast<double>(sentence.maps[k][static_cast<size_t>(i * size + j)]);
    }
  }
  for (int64_t j = 0; j < size; ++j) {
    double most = -1e300, total = 0;
    for (int64_t i = 0; i < size; ++i) most = i == j ? most : std::max(most, scores(i, j));
    for (int64_t i = 0; i < size; ++i) total += i == j ? 0 : std::exp(scores(i, j) - most);
    for (int64_t i = 0; i < size; ++i) scores(i, j) -= most + std::log(total);
  }
  return scores;
}

void DependencyProbe::learn() {
  std::vector<std::vector<double>> gradients(batch_.size());
  int64_t words = 0;
  for (const Features& sentence : batch_) words += std::max<int64_t>(0, sentence.size - 1);
  if (words == 0) return;
  parallel_for(std::ssize(batch_), [&](int64_t s) {
    const Features& sentence = batch_[static_cast<size_t>(s)];
    std::vector<double>& gradient = gradients[static_cast<size_t>(s)];
    gradient.assign(weights_.size(), 0);
    const int64_t size = sentence.size;
    if (size < 2) return;
    const DoubleMatrix scores = log_probabilities(sentence);
    for (int64_t j = 0; j < size; ++j) {
      const int head = (*sentence.tree)[static_cast<size_t>(j)].head;
      if (head < 0 || head >= size) continue;
      for (int64_t i = 0; i < size; ++i) {
        if (i == j) continue;
        const double slope = std::exp(scores(i, j)) - (i == head ? 1 : 0);  // of -log p(head | j)
        for (size_t k = 0; k < gradient.size(); ++k)
          gradient[k] += slope * static_cast<double>(sentence.maps[k][static_cast<size_t>(i * size + j)]);
      }
    }
  });
  ++updates_;
  const double mean_part = 1 - std::pow(kMeanDecay, updates_),
               square_part = 1 - std::pow(kSquareDecay, updates_);
  for (size_t k = 0; k < weights_.size(); ++k) {
    double gradient = 0;
    for (const auto& of_sentence : gradients) gradient += of_sentence[k];
    gradient /= static_cast<double>(words);
    mean_[k] = kMeanDecay * mean_[k] + (1 - kMeanDecay) * gradient;
    square_[k] = kSquareDecay * square_[k] + (1 - kSquareDecay) * gradient * gradient;
    weights_[k] -= kRate * (mean_[k] / mean_part) / (std::sqrt(square_[k] / square_part) + kEpsilon);
  }
}

void DependencyProbe::count() {
  for (const Features& sentence : batch_) {
    const std::vector<Word>& tree = *sentence.tree;
    if (tree.size() < 2) continue;
    // Of a sentence that was cut, the words behind are wrong, and a root behind them is no word of the tree.
    const int root = root_of(tree);
    std::vector<int> heads;
    if (sentence.size > 1)
      heads = maximum_spanning_tree(log_probabilities(sentence), root < sentence.size ? root : 0);
    for (size_t j = 0; j < tree.size(); ++j) {
      if (tree[j].head < 0) continue;
      ++words_;
      right_ += j < heads.size() && heads[j] == tree[j].head;
    }
  }
}

std::vector<DependencyProbe::Head> DependencyProbe::heads() const {
  std::vector<Head> all;
  for (size_t k = 0; k < names_.size(); ++k)
    all.push_back({.name = names_[k], .reads = weights_[2 * k], .read = weights_[2 * k + 1]});
  return all;
}

}  // namespace mh
