#include "multihead/nn/multi_head_attention.h"

#include <fmt/format.h>

#include "multihead/autograd/attention.h"

namespace mh {
namespace {

MultiHeadAttentionConfig completed(const std::string& name, MultiHeadAttentionConfig config) {
  if (config.d_model < 1 || config.heads < 1) {
    throw UsageError(fmt::format("{}: d_model {} and heads {}; both must be at least 1", name, config.d_model,
                                 config.heads));
  }
  if (config.d_key == 0) {
    if (config.d_model % config.heads != 0) {
      throw UsageError(fmt::format("{}: d_model {} is not divisible by {} heads; set d_key", name,
                                   config.d_model, config.heads));
    }
    config.d_key = config.d_model / config.heads;
  }
  if (config.d_value == 0) config.d_value = config.d_key;
  if (config.d_key < 1 || config.d_key > 1024 || config.d_value < 1 || config.d_value > 1024) {
    throw UsageError(fmt::format("{}: d_key {} and d_value {}; both must lie in 1 ... 1024", name,
                                 config.d_key, config.d_value));
  }
  return config;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::string name, const MultiHeadAttentionConfig& config,
                                       DropoutSites& sites)
    : name_(std::move(name)),
      config_(completed(name_, config)),
      site_(sites.next()),
      w_q_(config_.d_model, int64_t{config_.heads} * config_.d_key),
      w_k_(config_.d_model, int64_t{config_.heads} * config_.d_key),
      w_v_(config_.d_model, int64_t{config_.heads} * config_.d_value),
      w_o_(int64_t{config_.heads} * config_.d_value, config_.d_model),
      b_q_(1, w_q_.value.cols()),
      b_k_(1, w_k_.value.cols()),
      b_v_(1, w_v_.value.cols()),
      b_o_(1, config_.d_model),
      all_({&w_q_, &w_k_, &w_v_}, {&b_q_, &b_k_, &b_v_}),
      queries_({&w_q_}, {&b_q_}),
      memory_({&w_k_, &w_v_}, {&b_k_, &b_v_}),
      output_({&w_o_}, {&b_o_}) {}

MultiHeadAttention::Projected MultiHeadAttention::project(Context& context, Var x) {
  Tape& tape = context.tape;
  const Var all = affine(tape, x, all_);  // [N, heads * (2 d_key + d_value)]
  const int64_t k = w_q_.value.cols(), v = k + w_k_.value.cols();
  return {tape.columns(all, 0, k), tape.columns(all, k, v), tape.columns(all, v, all.cols())};
}

Var MultiHeadAttention::project_queries(Context& context, Var x) {
  return affine(context.tape, x, queries_);
}

KeysAndValues MultiHeadAttention::project_memory(Context& context, Var memory,
                                                 std::span<const int32_t> offsets) {
  Tape& tape = context.tape;
  const Var both = affine(tape, memory, memory_);  // [Nk, heads * (d_key + d_value)]
  const int64_t v = w_k_.value.cols();
  return {.keys = tape.columns(both, 0, v),
          .values = tape.columns(both, v, both.cols()),
          .offsets = offsets,
          .rows = {}};
}

Var MultiHeadAttention::attend(Context& context, Var q, const Sequences& rows, const KeysAndValues& memory,
                               const Mask& mask) {
  AttentionInputs inputs;
  inputs.q = q.value();
  inputs.k = memory.keys.value();
  inputs.v = memory.values.value();
  inputs.heads = inputs.key_heads = inputs.value_heads = config_.heads;
  inputs.d_key = config_.d_key;
  inputs.d_value = config_.d_value;
  inputs.query_offsets = rows.ragged->offsets();
  inputs.key_offsets = memory.offsets;
  inputs.key_rows = memory.rows;
  inputs.scale = attention_scale(config_.d_key);
  inputs.mask = mask;
  inputs.dropout = dropout_at(context, config_.weights_dropout, site_, rows);
  if (context.interventions != nullptr) inputs.gate = context.interventions->gates(name_, config_.heads);

  Observer* observer = context.observer;
  const bool observed = observer != nullptr && observer->wants_weights(name_);
  float* weights =
      observed ? context.tape.arena().array<float>(attention_weights_size(inputs)).data() : nullptr;
  const Var heads = attention(context.tape, q, memory.keys, memory.values, inputs, weights);
  if (observed) {
    observer->weights({.name = name_,
                       .heads = config_.heads,
                       .query_offsets = inputs.query_offsets,
                       .key_offsets = inputs.key_offsets,
                       .weights = weights});
  }
  return heads;
}

Var MultiHeadAttention::self(Context& context, Var x, const Sequences& rows, const Mask& mask) {
  const Projected p = project(context, x);
  return attend(context, p.q, rows,
                {.keys = p.k, .values = p.v, .offsets = rows.ragged->offsets(), .rows = {}}, mask);
}

void MultiHeadAttention::initialise(Random& random) {
  // Fans of one head's matrix would be (d_model, d_key); the paper's code and most others use the whole
  // matrix's.
  for (Parameter* w : {&w_q_, &w_k_, &w_v_, &w_o_})
    xavier_uniform(*w, random, w->value.rows(), w->value.cols());
}

void MultiHeadAttention::visit(const std::string& name, const ParameterVisitor& visitor) {
  visitor(name + ".w_q", w_q_);
  visitor(name + ".b_q", b_q_);
  visitor(name + ".w_k", w_k_);
  visitor(name + ".b_k", b_k_);
  visitor(name + ".w_v", w_v_);
  visitor(name + ".b_v", b_v_);
  visitor(name + ".w_o", w_o_);
  visitor(name + ".b_o", b_o_);
}

}  // namespace mh
