#include "multihead/heads/contributions/answer_pass.h"

#include <algorithm>
#include <span>
#include <string>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/pool_rows.h"
#include "multihead/autograd/scores.h"
#include "multihead/base/finite.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/models/label_head.h"
#include "multihead/models/vocabulary_head.h"

namespace mh {
namespace {

/// The largest number of a row.
int32_t best_of(ConstMatrixView rows, int64_t row) {
  return static_cast<int32_t>(std::max_element(rows.row(row), rows.row(row) + rows.cols) - rows.row(row));
}

/// The numbers of one column each, less those of another where there is one.
Var picked_less(Tape& tape, Var rows, std::span<const int32_t> of, std::span<const int32_t> columns,
                const std::optional<PatchAnswer>& wrong) {
  const Var found = ops::pick(tape, rows, of, columns);
  if (!wrong) return found;
  const std::vector<int32_t> others(of.size(), *wrong->token);
  return ops::add(tape, found, ops::scale(tape, ops::pick(tape, rows, of, others), -1.0f));
}

Var less_mean(Tape& tape, Var numbers, Var rows, std::span<const int32_t> of) {
  const MatrixView share = tape.arena().matrix<float>(rows.cols(), 1);
  std::fill_n(share.data, share.size(), -1.0f / static_cast<float>(share.rows));
  const Var means = ops::matmul(tape, rows, tape.constant(share));
  const std::vector<int32_t> first(of.size(), 0);
  return ops::add(tape, numbers, ops::pick(tape, means, of, first));
}

constexpr Tape::Mode kMode = Tape::Mode::kRecordValues;

}  // namespace

AnswerPass::AnswerPass(const ModelFolder& folder, AnswerText& asked, const AnswerPassOptions& options)
    : tape_(kMode, Tape::Paths::kStream), context_{.tape = tape_, .sites = options.sites} {
  text_.add(asked.text.ids, 0, asked.text.types);
  if (!asked.target.ids.empty()) target_.add(asked.target.ids, 0);
  scores_ = folder.labels ? of_labels(folder, asked) : of_words(folder, asked, options);
  require_finite(scores_.value(), "what is explained", context_.blame());
}

Var AnswerPass::of_words(const ModelFolder& folder, AnswerText& asked, const AnswerPassOptions& options) {
  const Model& model = *folder.model;
  const bool translator = !asked.target.ids.empty();
  const Batch& last = translator ? target_ : text_;
  const Var states = model.read(context_, text_.view(), translator ? target_.view() : Sequences());
  const std::vector<int32_t>& ids = translator ? asked.target.ids : asked.text.ids;
  std::vector<int32_t> rows, tokens;
  Var logits;
  if (options.every_position) {
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      rows.push_back(static_cast<int32_t>(i));
      tokens.push_back(ids[i + 1]);
    }
    // A vocabulary is large: without need no other logits are made.
    if (!options.centred && !context_.wants(model.vocabulary().site()))
      return model.vocabulary().logits_of(tape_, take_rows(tape_, states, rows), tokens);
    logits = model.logits(context_, states, last.view());
  } else {
    std::vector<double> pick(ids.size(), 0.0);
    pick[static_cast<size_t>(asked.predicting)] = 1;
    picked_.add(std::vector<int32_t>{ids[static_cast<size_t>(asked.predicting)]}, 0);
    const Var row = weigh_rows(tape_, states, last.ragged.offsets(), pick);
    logits = model.logits(context_, row, picked_.view());
    if (!asked.answer) {
      const Tokenizer& tokenizer = translator ? folder.target_tokens() : folder.source_tokens();
      const int32_t best = best_of(logits.value(), 0);
      asked.answer = {
          .text = tokenizer.shown(best), .token = best, .label = tokenizer.shown(best), .tokens = 1};
    }
    rows = {0};
    tokens = {*asked.answer->token};
  }
  const Var found = picked_less(tape_, logits, rows, tokens, asked.wrong);
  return options.centred ? less_mean(tape_, found, logits, rows) : found;
}

Var AnswerPass::of_labels(const ModelFolder& folder, AnswerText& asked) {
  const Model& model = *folder.model;
  const LabelHead& head = *model.label_head();
  const Var states = model.read(context_, text_.view(), Sequences());
  const Var logits = model.label_logits(context_, states, text_.view());
  const std::vector<int32_t> rows = {static_cast<int32_t>(head.row(text_.ragged, 0, asked.predicting))};
  if (!asked.answer) {
    const int32_t best = best_of(logits.value(), rows[0]);
    const std::string& name = folder.labels->names[static_cast<size_t>(best)];
    asked.answer = {.text = name, .token = best, .label = name, .tokens = 1};
  }
  const std::vector<int32_t> labels = {*asked.answer->token};
  return picked_less(tape_, logits, rows, labels, asked.wrong);
}

AnswerPass::AnswerPass(const SentenceModel& model, const AnswerText& asked, const Tensor& others,
                       const AnswerPassOptions& options)
    : tape_(kMode, Tape::Paths::kStream), context_{.tape = tape_, .sites = options.sites} {
  text_.add(asked.text.ids, 0, asked.text.types);
  const Var vector = model.vectors(context_, text_.view());
  const auto cosine = [&](int64_t row) {
    const MatrixView other = tape_.arena().matrix<float>(1, vector.cols());
    std::copy_n(others.view().row(row), other.cols, other.data);
    return ops::cosines(tape_, vector, tape_.constant(other));
  };
  scores_ = cosine(0);
  if (others.rows() > 1) scores_ = ops::add(tape_, scores_, ops::scale(tape_, cosine(1), -1.0f));
  require_finite(scores_.value(), "what is explained", context_.blame());
}

void AnswerPass::backward() {
  tape_.backward(ops::sum(tape_, scores_));
}

}  // namespace mh
