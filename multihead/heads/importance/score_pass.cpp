#include "multihead/heads/importance/score_pass.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/pool_rows.h"
#include "multihead/autograd/scores.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/models/label_head.h"
#include "multihead/tensor/cosine.h"

namespace mh {
namespace {

Tape& cleared(Tape& tape) {
  tape.clear();
  return tape;
}

}  // namespace

ScoredBatch scored_batch(const Model& model, const ScoredTexts& texts, std::span<const int64_t> numbers) {
  const ModelFacts facts = model.facts();
  ScoredBatch batch{.texts = {numbers.begin(), numbers.end()}};
  const bool translates = texts.kind == ScoreKind::kTranslation;
  for (const int64_t n : numbers) {
    const ScoredText& text = texts.texts[static_cast<size_t>(n)];
    batch.numbers.push_back(text.number);
    batch.text.add(text.ids, n, text.types);
    if (translates) batch.target.add(text.target, n, {.start_id = facts.start_id, .end_id = facts.eos_id});
    const Batch& read = translates ? batch.target.input : batch.text;
    const int32_t begin = read.ragged.begin(read.ragged.sequences() - 1);
    for (const int32_t row : text.rows) {
      batch.rows.push_back(begin + row);
      batch.positions.push_back(row);
    }
    batch.tokens.insert(batch.tokens.end(), text.tokens.begin(), text.tokens.end());
    batch.predictions.add(static_cast<int32_t>(text.tokens.size()));
  }
  return batch;
}

std::vector<std::vector<int64_t>> plan_scored(const ScoredTexts& texts, int64_t max_batch_tokens) {
  std::vector<ExampleSize> sizes;
  sizes.reserve(texts.texts.size());
  for (const ScoredText& text : texts.texts) sizes.push_back({.tokens = text.size()});
  return plan_batches(sizes, {.max_tokens = max_batch_tokens, .order = BatchOptions::Order::kAsGiven});
}

ScorePass::ScorePass(Tape& tape, const ScoredModel& model, ScoreKind kind, const ScoredBatch& batch,
                     const ScorePassOptions& options)
    : tape_(cleared(tape)),
      kind_(kind),
      batch_(batch),
      listed_(options.sites, {.texts = batch.numbers}),
      context_{.tape = tape_, .sites = listed_.sites(), .starts = options.starts},
      states_(last_states(model)) {}

Var ScorePass::last_states(const ScoredModel& model) {
  if (kind_ == ScoreKind::kVectors)
    return model.sentences().vectors(context_, batch_.text.view(), 0);  // a corpus is read without the prompt
  const bool translates = kind_ == ScoreKind::kTranslation;
  if (kind_ == ScoreKind::kLabels) {
    const Model& classifier = *model.folder().model;
    const Var logits = classifier.label_logits(context_, classifier.read(context_, batch_.text.view(), {}),
                                               batch_.text.view());
    std::vector<int32_t> rows = batch_.rows;
    if (!classifier.label_head()->of_tokens()) std::iota(rows.begin(), rows.end(), 0);  // one of each text
    return ops::pick(tape_, logits, rows, batch_.tokens);
  }
  const Var all = model.folder().model->read(context_, batch_.text.view(),
                                             translates ? batch_.target.input.view() : Sequences());
  const Var read = take_rows(tape_, all, batch_.rows);
  head_ = &model.folder().model->vocabulary();
  return model.folder().model->word_states(context_, read);
}

std::vector<double> ScorePass::scores(ConstMatrixView references, VocabularyScratch& scratch) {
  std::vector<double> found;
  if (kind_ == ScoreKind::kVectors) {
    const ConstMatrixView vectors = this->vectors();
    const auto size = static_cast<size_t>(vectors.cols);
    for (int64_t s = 0; s < vectors.rows; ++s)
      found.push_back(cosine({vectors.row(s), size}, {references.row(s), size}));
    return found;
  }
  std::vector<float> each;
  if (kind_ == ScoreKind::kLabels) {
    for (int64_t i = 0; i < states_.rows(); ++i) each.push_back(states_.value()(i, 0));
  } else {
    NextWords words(*head_, context_, states_,
                    {.offsets = batch_.predictions.offsets(), .positions = batch_.positions});
    each = words.log_probabilities(batch_.tokens, scratch);
  }
  for (int32_t s = 0; s < batch_.predictions.sequences(); ++s) {
    double sum = 0;
    for (int32_t i = batch_.predictions.begin(s); i < batch_.predictions.end(s); ++i)
      sum += static_cast<double>(each[static_cast<size_t>(i)]);
    found.push_back(sum);
  }
  return found;
}

Var ScorePass::sum(ConstMatrixView references, VocabularyScratch& scratch) {
  if (kind_ == ScoreKind::kVectors) {
    const MatrixView others = tape_.arena().matrix<float>(references.rows, references.cols);
    for (int64_t s = 0; s < others.rows; ++s) std::copy_n(references.row(s), others.cols, others.row(s));
    return ops::sum(tape_, ops::cosines(tape_, states_, tape_.constant(others)));
  }
  if (kind_ == ScoreKind::kLabels) return ops::sum(tape_, states_);
  NextWords words(*head_, context_, states_,
                  {.offsets = batch_.predictions.offsets(), .positions = batch_.positions});
  CrossEntropySums sums;
  const Var total = words.cross_entropy({.targets = batch_.tokens, .scale = -1}, scratch, sums);
  require_finite(total.value(), "the sum of log-probabilities");
  return total;
}

}  // namespace mh
