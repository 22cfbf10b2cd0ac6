#include "multihead/heads/measures/mean_aligner.h"

#include <algorithm>
#include <utility>

#include "multihead/heads/measures/word_alignment.h"
#include "multihead/nn/attention_place.h"

namespace mh {

MeanAligner::MeanAligner(AligningHeads heads, OnSentence on_sentence)
    : heads_(std::move(heads)), on_sentence_(std::move(on_sentence)) {
  for (const AligningHead& one : heads_.heads) last_layer_ = std::max(last_layer_, int{one.layer});
}

bool MeanAligner::wants_weights(const Model::Attention& attention) const {
  return attention.place.kind == AttentionKind::kCross &&
         std::any_of(heads_.heads.begin(), heads_.heads.end(),
                     [&](const AligningHead& one) { return one.layer == attention.place.layer; });
}

void MeanAligner::weights(const BatchWeights& batch) {
  const auto sequences = static_cast<size_t>(batch.sequences());
  of_heads_.resize(sequences);
  for (size_t s = 0; s < sequences; ++s) {
    of_heads_[s].resize(heads_.heads.size());
    for (size_t h = 0; h < heads_.heads.size(); ++h) {
      if (heads_.heads[h].layer == batch.attention.place.layer)
        of_heads_[s][h] = copied(batch.matrix(static_cast<int>(s), heads_.heads[h].head));
    }
  }
  if (batch.attention.place.layer < last_layer_) return;
  for (size_t s = 0; s < sequences; ++s) {
    const auto sentence = static_cast<size_t>(batch.sentences[s]);
    const WordOfToken queries = words_of_queries(words_->target_words[sentence], heads_.query);
    std::vector<std::vector<int32_t>> source_of_first;
    Tensor sum(of_heads_[s][0].rows(), of_heads_[s][0].cols());
    for (const Tensor& of_head : of_heads_[s]) {
      for (int64_t i = 0; i < sum.size(); ++i) sum.data()[i] += of_head.data()[i];
      source_of_first.push_back(strongest_sources(sum.view(), queries, words_->target_sizes[sentence],
                                                  words_->source_words[sentence]));
    }
    on_sentence_(sentence, source_of_first);
  }
  of_heads_.clear();
}

}  // namespace mh
