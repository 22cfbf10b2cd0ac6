#include "multihead/models/label_head.h"

#include <fmt/format.h>

#include <algorithm>
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

LabelHead::LabelHead(std::string_view stack, const LabelConfig& config, int64_t d_model, int32_t special)
    : stack_(stack),
      config_(config),
      special_(special),
      dense_(config.dense ? std::make_unique<Dense>(d_model, d_model, config.dense->biases) : nullptr),
      w_(d_model, config.labels),
      b_(1, config.labels),
      output_({&w_}, config.bias ? std::vector<const Parameter*>{&b_} : std::vector<const Parameter*>()) {
  if (config.dense && config.dense->norm) norm_.emplace(*config.dense->norm, d_model);
}

int32_t LabelHead::position(std::span<const int32_t> ids) const {
  if (config_.rows != LabelRows::kLast && config_.rows != LabelRows::kEnd) return 0;
  const bool end = config_.rows == LabelRows::kEnd;
  const auto last =
      std::find_if(ids.rbegin(), ids.rend(), [&](int32_t id) { return (id == special_) == end; });
  if (end && last == ids.rend())
    throw UsageError(fmt::format(
        "a text has no end token (id {}), at which its labels are read; give it as the tokenizer ends texts",
        special_));
  return std::max(0, static_cast<int32_t>(ids.rend() - last) - 1);
}

std::vector<int32_t> LabelHead::text_rows(const Sequences& tokens) const {
  require_tokens(tokens);
  const Ragged& ragged = *tokens.ragged;
  std::vector<int32_t> rows;
  for (int32_t s = 0; s < ragged.sequences(); ++s) {
    const auto begin = static_cast<size_t>(ragged.begin(s)), count = static_cast<size_t>(ragged.length(s));
    rows.push_back(ragged.begin(s) + position(tokens.ids.subspan(begin, count)));
  }
  return rows;
}

Var LabelHead::logits(Context& context, Var rows, const Sequences& tokens) const {
  Tape& tape = context.tape;
  const bool one_row = config_.rows == LabelRows::kFirst || config_.rows == LabelRows::kLast ||
                       config_.rows == LabelRows::kEnd;
  Var h = one_row                            ? take_rows(tape, rows, text_rows(tokens))
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
  if (config_.bias) visitor("labels.b", b_);
}

}  // namespace mh
