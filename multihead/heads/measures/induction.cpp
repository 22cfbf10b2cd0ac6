#include "multihead/heads/measures/induction.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/io/check_option.h"
#include "multihead/nn/attention_place.h"

namespace mh {
namespace {

class InductionObserver final : public CorpusObserver {
 public:
  /// begin: where the first random token is.
  InductionObserver(int64_t begin, int64_t length) : begin_(begin), length_(length) {}

  bool wants_weights(const Model::Attention&) const override { return true; }

  void weights(const BatchWeights& batch) override {
    std::vector<InductionScore>& scores = scores_[batch.attention.place.layer];
    if (scores.empty()) {
      for (int h = 0; h < batch.heads(); ++h)
        scores.push_back({.attention = batch.attention.name, .head = h});
    }
    for (int s = 0; s < batch.sequences(); ++s) {
      for (InductionScore& score : scores) {
        const ConstMatrixView a = batch.matrix(s, score.head);
        for (int64_t i = begin_ + 1; i < a.rows; ++i) {
          score.previous_token += static_cast<double>(a(i, i - 1)) / static_cast<double>(2 * length_ - 1);
          if (i >= begin_ + length_)
            score.induction += static_cast<double>(a(i, i - length_ + 1)) / static_cast<double>(length_);
        }
      }
    }
    sequences_[batch.attention.place.layer] += batch.sequences();
  }

  std::vector<InductionScore> scores() const {
    std::vector<InductionScore> all;
    for (const auto& [layer, scores] : scores_) {
      for (InductionScore score : scores) {
        const auto count = static_cast<double>(sequences_.at(layer));
        score.previous_token /= count;
        score.induction /= count;
        all.push_back(std::move(score));
      }
    }
    return all;
  }

 private:
  int64_t begin_, length_;
  std::map<int, std::vector<InductionScore>> scores_;  // by layer
  std::map<int, int64_t> sequences_;
};

}  // namespace

std::vector<InductionScore> induction_scores(const ModelFolder& folder, const InductionOptions& options) {
  if (!is_causal(folder)) {
    throw UsageError(
        fmt::format("{} holds a {} model; induction heads continue a text, which only causal models do",
                    folder.path.string(), folder.model_type));
  }
  check_option("sequences", options.sequences, {.low = 1});
  check_option("length", options.length, {.low = 4});
  const Tokenizer& tokenizer = folder.source_tokens();
  const Encoding letter = tokenizer.encode("a");
  std::vector<int32_t> first;
  for (size_t i = 0; i < letter.ids.size() && letter.offsets[i] == std::pair(0, 0); ++i)
    first.push_back(letter.ids[i]);
  const ModelFacts facts = folder.model->facts();
  const auto begin = static_cast<int64_t>(first.size());
  const int64_t length = std::min<int64_t>(options.length, (facts.max_positions - begin) / 2);
  if (length < 4)
    throw UsageError(fmt::format("{} reads {} tokens; repeated random tokens take 8 or more",
                                 folder.path.string(), facts.max_positions));
  const auto vocabulary = static_cast<uint32_t>(std::min(tokenizer.size(), facts.vocabulary_read()));
  Random random(options.seed);
  std::vector<std::vector<int32_t>> sequences;
  for (int s = 0; s < options.sequences; ++s) {
    std::vector<int32_t>& ids = sequences.emplace_back(first);
    for (int64_t i = 0; i < length; ++i) {
      int32_t id = 0;
      // A special token decodes to nothing.
      do id = static_cast<int32_t>(random.below(vocabulary));
      while (tokenizer.decode({&id, 1}, true).empty());
      ids.push_back(id);
    }
    ids.insert(ids.end(), ids.begin() + begin, ids.begin() + begin + length);
  }
  InductionObserver observer(begin, length);
  CorpusObserver* const observers[] = {&observer};
  const std::vector<int64_t> of_no_list(sequences.size(), -1);  // an edit of one text is not meant
  observe_corpus(*folder.model, sequences, {}, observers, {.sites = options.sites, .numbers = of_no_list});
  return observer.scores();
}

}  // namespace mh
