#include "multihead/models/label_head.h"

#include <fmt/format.h>

#include <vector>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/pool_rows.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"

namespace mh {
namespace {

void require_tokens(const Sequences& tokens) {
  for (int32_t s = 0; s < tokens.ragged->sequences(); ++s) {
    if (tokens.ragged->length(s) == 0)
      throw UsageError(
          fmt::format("sequence {} has no tokens; give texts of which the tokenizer makes some", s + 1));
  }
}

Var mean_rows(Tape& tape, Var states, const Sequences& tokens) {
  require_tokens(tokens);
  const Ragged& ragged = *tokens.ragged;
  std::vector<double> weights;
  for (int32_t s = 0; s < ragged.sequences(); ++s)
    weights.insert(weights.end(), static_cast<size_t>(ragged.length(s)), 1.0 / ragged.length(s));
  return weigh_rows(tape, states, ragged.offsets(), weights);
}

}  // namespace

Var first_rows(Tape& tape, Var states, const Sequences& tokens) {
  require_tokens(tokens);
  const Ragged& ragged = *tokens.ragged;
  std::vector<int32_t> rows;
  for (int32_t s = 0; s < ragged.sequences(); ++s) rows.push_back(ragged.begin(s));
  return take_rows(tape, states, rows);
}

LabelHead::LabelHead(std::string_view stack, const LabelConfig& config, int64_t d_model)
    : stack_(stack),
      config_(config),
      dense_(config.dense ? std::make_unique<Dense>(d_model, d_model, config.dense->biases) : nullptr),
      w_(d_model, config.labels),
      b_(1, config.labels),
      output_({&w_}, {&b_}) {
  if (config.dense && config.dense->norm) norm_.emplace(*config.dense->norm, d_model);
}

Var LabelHead::logits(Context& context, Var rows, const Sequences& tokens) const {
  Tape& tape = context.tape;
  Var h = config_.rows == LabelRows::kFirst  ? first_rows(tape, rows, tokens)
          : config_.rows == LabelRows::kMean ? mean_rows(tape, rows, tokens)
                                             : rows;
  if (dense_) {
    h = affine(tape, h, dense_->affine,
               {.activation = config_.dense->activation.value_or(Activation::kNone), .dropout = {}});
    if (!config_.dense->activation) {
      require_finite(h.value(), "what the layer of labels reads",
                     context.blame());  // tanh would make 1 of infinity
      h = ops::tanh(tape, h);
    }
    if (norm_) h = norm_->forward(context, h);
  }
  const Var made = affine(tape, h, output_);
  require_finite(made.value(), "logits of labels", context.blame());
  const RowPlaces places = of_tokens() ? RowPlaces{.offsets = tokens.ragged->offsets()}
                                       : one_row_each(tape.arena(), tokens.ragged->sequences());
  return context.at(site(), {.value = made, .rows = places});
}

void LabelHead::visit(const ParameterVisitor& visitor) {
  if (dense_) {
    visitor("labels.dense.w", dense_->w);
    if (config_.dense->biases == Biases::kAll) visitor("labels.dense.b", dense_->b);
    if (norm_) norm_->visit("labels.norm", visitor);
  }
  visitor("labels.w", w_);
  visitor("labels.b", b_);
}

}  // namespace mh
