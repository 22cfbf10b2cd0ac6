#include "multihead/heads/sites/text_pass.h"

#include "multihead/autograd/ops.h"
#include "multihead/autograd/scores.h"
#include "multihead/base/error.h"
#include "multihead/batch/check_ids.h"

namespace mh {

TextPass::TextPass(const Model& model, std::span<const Observation* const> seen,
                   const TextPassOptions& options)
    : model_(model),
      tape_(options.mode),
      context_{.tape = tape_, .sites = options.sites},
      translates_(seen.front()->targets != TargetsRead::kNone) {
  if (options.sites != nullptr) model.check(*options.sites);
  const ModelFacts facts = model.facts();
  const bool causal = model.kind() == ModelKind::kCausal;
  for (const Observation* const text : seen) {
    const ObservedTokens& read = causal ? text->target : text->source;
    check_ids({&read.ids, 1}, {.what = "source",
                               .longest = facts.max_positions,
                               .vocabulary = facts.vocabulary_read(),
                               .may_be_empty = false});
    text_.add(read.ids, text_.ragged.sequences(), read.types);
    if (translates_) target_.add(text->target.ids, target_.ragged.sequences());
    const Ragged& last = (translates_ ? target_ : text_).ragged;
    const int32_t begin = last.begin(last.sequences() - 1);
    const std::vector<int32_t>& predicted = translates_ ? text->predicted.ids : read.ids;
    for (size_t i = causal ? 1 : 0; i < predicted.size(); ++i) {
      rows_.push_back(begin + static_cast<int32_t>(causal ? i - 1 : i));
      tokens_.push_back(predicted[i]);
    }
  }
  states_ = model.read(context_, text_.view(), translates_ ? target_.view() : Sequences());
}

void TextPass::call_output_sites() {
  model_.call_output_sites(context_, states_, (translates_ ? target_ : text_).view());
}

Var TextPass::logits() {
  return model_.logits(context_, states_, (translates_ ? target_ : text_).view());
}

Var TextPass::label_logits() {
  return model_.label_logits(context_, states_, text_.view());
}

Var TextPass::log_probabilities() {
  if (tokens_.empty())
    throw UsageError("a causal model predicts a text's tokens after the first; give at least two");
  return ops::pick(tape_, ops::log_softmax(tape_, logits()), rows_, tokens_);
}

Var TextPass::log_probability() {
  return ops::sum(tape_, log_probabilities());
}

}  // namespace mh
