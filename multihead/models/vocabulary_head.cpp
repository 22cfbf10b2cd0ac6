#include "multihead/models/vocabulary_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/autograd/ops.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/kernels/elementwise.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/soft_cap.h"
#include "multihead/kernels/vocabulary.h"

namespace mh {

void check_candidates(const NextOptions& options) {
  if (options.candidates >= 1 && options.candidates <= kMaxCandidates) return;
  throw UsageError(fmt::format("candidates: expected 1 to {}, got {}", kMaxCandidates, options.candidates));
}

double log_sum_exp(std::span<const float> logits) {
  const auto most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum);
}

float log_probability(std::span<const float> logits, int32_t token) {
  return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(token)]) - log_sum_exp(logits));
}

Var VocabularyHead::scaled(Tape& tape, Var states) const {
  return scale_ == 1 ? states : ops::scale(tape, states, scale_);
}

ConstMatrixView VocabularyHead::scaled(ConstMatrixView states, Tensor& kept) const {
  if (scale_ == 1) return states;
  kept = Tensor(states.rows, states.cols);
  for (int64_t i = 0; i < states.rows; ++i) {
    for (int64_t j = 0; j < states.cols; ++j) kept(i, j) = scale_ * states(i, j);
  }
  return kept.view();
}

ConstMatrixView VocabularyHead::bias() const {
  if (bias_ == nullptr) return {};
  const ConstMatrixView bias = bias_->value.view();
  return std::all_of(bias.data, bias.data + bias.cols, [](float b) { return b == 0; }) ? ConstMatrixView()
                                                                                       : bias;
}

OutputLayer VocabularyHead::layer() const {
  return {.logits = &table_.packed(), .bias = bias(), .soft_cap = soft_cap_};
}

void VocabularyHead::logits(ConstMatrixView states, MatrixView logits) const {
  const OutputLayer output = layer();
  Tensor kept;
  multiply(scaled(states, kept), *output.logits, logits, Write::kOverwrite, [&](int64_t begin, int64_t end) {
    const MatrixView rows = logits.rows_between(begin, end);
    add_bias(output.bias, rows);
    if (soft_cap_) soft_cap(*soft_cap_, rows, rows);
  });
  require_finite(logits, "logits");
}

std::vector<float> VocabularyHead::log_probabilities(ConstMatrixView states, std::span<const int32_t> targets,
                                                     VocabularyScratch& scratch) const {
  std::vector<float> found(targets.size());
  Tensor kept;
  mh::log_probabilities(layer(), scaled(states, kept), targets, found, scratch);
  require_finite(found, "probabilities");
  return found;
}

void VocabularyHead::best_next(ConstMatrixView states, const NextOptions& options, std::span<Candidate> out,
                               VocabularyScratch& scratch) const {
  check_candidates(options);
  Tensor kept;
  best_candidates(layer(), scaled(states, kept), options.candidates, options.suppressed, out, scratch);
  // Not-a-number compares false with everything, so that such rows find no candidate at all.
  const bool finite = std::all_of(out.begin(), out.end(),
                                  [](const Candidate& c) { return std::isfinite(c.log_probability); });
  if (!finite) throw_not_finite("probabilities");
}

Var VocabularyHead::cross_entropy(Tape& tape, Var states, const CrossEntropyOptions& options,
                                  VocabularyScratch& scratch, CrossEntropySums& sums) const {
  return mh::cross_entropy(tape, scaled(tape, states), parameters(), options, scratch, sums);
}

}  // namespace mh
