// MeanAligner: links each target word with the source word on which the mean weights of some heads are largest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "multihead/generate/search.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/tensor/tensor.h"

namespace mh {

class MeanAligner final : public CorpusObserver {
 public:
  /// Called once for each sentence of a block with the source word of each target word, or -1 (strongest_sources()), by the mean of
  /// the first head, of the first two, and so on to all.
  using OnSentence =
      std::function<void(size_t sentence, std::span<const std::vector<int32_t>> source_of_first)>;
  MeanAligner(AligningHeads heads, OnSentence on_sentence);

  void begin(const CorpusBlock& block) override { words_ = &block.alignments; }
  bool wants_weights(const Model::Attention& attention) const override;
  void weights(const BatchWeights& batch) override;

 private:
  AligningHeads heads_;
  OnSentence on_sentence_;
  int last_layer_ = 0;
  const GoldAlignments* words_ = nullptr;  // of the block; its links are not read
  /// [sequence of the batch that runs][head]: the weights of each head, until the last layer is there.
  std::vector<std::vector<Tensor>> of_heads_;
};

}  // namespace mh
