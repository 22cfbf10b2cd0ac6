// What each text's score loses without a head: its output is multiplied by 0, or becomes what the head gives on average over the
// corpus. What stands below the head's layer is the same without it, so it is computed once for all heads of a layer
// (Context::starts).
//
// Of ScoreKind::kVectors the score is the cosine of a text's vector to the whole model's, whose own score is 1.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/importance/scored_texts.h"
#include "multihead/nn/head_name.h"
#include "multihead/nn/sites.h"
#include "multihead/tensor/tensor.h"

namespace mh {

enum class AblatedTo {
  kZero,  // 0
  kMean,  // the mean of the head's output over all rows of the corpus
};
inline constexpr EnumNames<AblatedTo> kAblatedToNames = {{"zero", AblatedTo::kZero},
                                                         {"mean", AblatedTo::kMean}};

struct HeadAblationOptions {
  AblatedTo to = AblatedTo::kZero;
  /// Ablate all heads of the attention but this one (Michel et al. 2019, section 3.3).
  bool all_others = false;
  int64_t max_batch_tokens = 2048;
  Sites* sites = nullptr;
  std::function<void(int64_t done)> progress = nullptr;  // of texts times heads
};

struct HeadAblation {
  std::vector<double> scores;  // [texts]: of the whole model
  Tensor losses;               // [texts, heads]: the whole model's score less the score without the head
};

/// Throws UsageError on heads that the model does not have, Error when a score is not finite.
HeadAblation ablate_heads(const ScoredModel& model, const ScoredTexts& texts, std::span<const HeadName> heads,
                          const HeadAblationOptions& options = {});

/// The mean of each head's output over the rows of the corpus, [1, d_value], in the order of `heads`.
std::vector<Tensor> mean_outputs(const ScoredModel& model, const ScoredTexts& texts,
                                 std::span<const HeadName> heads, int64_t max_batch_tokens, Sites* sites);

}  // namespace mh
