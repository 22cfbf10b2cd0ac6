#include "multihead/nn/multi_head_attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/autograd/affine.h"
#include "multihead/autograd/disagreement.h"
#include "multihead/base/error.h"
#include "multihead/nn/attention_positions.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/weighted_values.h"

namespace mh {

MultiHeadAttention::MultiHeadAttention(std::string name, const MultiHeadAttentionConfig& config,
                                       DropoutSites& sites)
    : name_(std::move(name)), config_(config), site_(sites.next()) {
  HeadGeometry& geometry = config_.geometry;
  geometry = completed(geometry, config.d_model, name_);
  config_.d_out = output_size(geometry, config.d_model, config.d_out, name_);
  heads_ = make_heads(geometry, config.d_model);
  values_ = make_weighted_values(geometry, config.layer);
  if (const auto wrong = problems_of(config.positions, geometry, config.d_model); !wrong.empty()) {
    throw UsageError(fmt::format("{}: {}", name_, wrong[0]));
  }
  positions_ = make_attention_positions(config.positions, config.direction, heads_->shape(), config.d_model,
                                        softmaxes_per_head(geometry), config.rotary);
  if (geometry.output == HeadOutput::kConcatenation) return;
  w_o_ = Parameter(int64_t{geometry.heads} * geometry.d_value, config_.d_out);
  if (geometry.biases == Biases::kAll) b_o_ = Parameter(1, config_.d_out);
  output_ = std::make_unique<const Affine>(std::vector<const Parameter*>{&w_o_},
                                           biases_or_none(geometry.biases, {&b_o_}));
}

MultiHeadAttention::~MultiHeadAttention() = default;

int64_t MultiHeadAttention::key_width() const {
  const HeadShape shape = heads_->shape();
  return int64_t{shape.key_heads} * shape.d_key;
}

int64_t MultiHeadAttention::value_width() const {
  const HeadShape shape = heads_->shape();
  return int64_t{shape.value_heads} * shape.d_value;
}

void MultiHeadAttention::show_rows(Context& context, ProjectedTo to, Var rows) const {
  if (context.observer != nullptr && context.observer->wants_weights(name_))
    context.observer->rows(name_, to, rows.value());
}

Var MultiHeadAttention::project_queries(Context& context, Var x, const RowPlaces& places) const {
  show_rows(context, ProjectedTo::kQueries, x);
  return context.at({name_, SitePart::kQueries},
                    {heads_->queries(context, x), heads_->shape().heads, places});
}

KeysAndValues MultiHeadAttention::project_memory(Context& context, Var memory,
                                                 std::span<const int32_t> offsets) const {
  show_rows(context, ProjectedTo::kKeysAndValues, memory);
  const Heads::KeysValues both = heads_->keys_and_values(context, memory);
  const HeadShape shape = heads_->shape();
  const RowPlaces places{.offsets = offsets};
  return {.keys = context.at({name_, SitePart::kKeys}, {both.k, shape.key_heads, places}),
          .values = context.at({name_, SitePart::kValues}, {both.v, shape.value_heads, places}),
          .offsets = offsets,
          .rows = {}};
}

Var MultiHeadAttention::gates(Context& context, const Ragged& rows, const RowPlaces& places) const {
  Tape& tape = context.tape;
  MatrixView set;  // of all sequences
  if (context.interventions != nullptr) set = context.interventions->gates(name_, heads(), tape.arena());
  const Site site{name_, SitePart::kGates};
  if (!context.wants(site)) return set.data != nullptr ? tape.constant(set) : Var();
  const MatrixView each = tape.arena().matrix<float>(rows.sequences(), heads());
  for (int32_t s = 0; s < rows.sequences(); ++s) {
    for (int64_t h = 0; h < heads(); ++h) each(s, h) = set.data != nullptr ? set(0, h) : 1;
  }
  // Row i is that of the kernel's sequence i: a sequence of the batch, or in cached decoding one of its hypotheses.
  const std::span<int32_t> offsets = tape.arena().array<int32_t>(static_cast<int64_t>(places.offsets.size()));
  const auto begins = rows.offsets().first(static_cast<size_t>(rows.sequences()));
  const bool same =
      std::equal(rows.offsets().begin(), rows.offsets().end(), places.offsets.begin(), places.offsets.end());
  for (size_t s = 0; s < offsets.size(); ++s) {
    const auto first = std::lower_bound(begins.begin(), begins.end(), places.offsets[s]) - begins.begin();
    offsets[s] = static_cast<int32_t>(same ? static_cast<int64_t>(s) : first);
  }
  return context.at(site, {tape.constant(each), heads(), {.offsets = offsets}});
}

Var MultiHeadAttention::attend(Context& context, Var q, const Sequences& rows, const KeysAndValues& memory,
                               const Mask& mask, const RowPlaces& places, ObservedWeights* wanted) const {
  AttentionInputs inputs;
  inputs.q = q.value();
  inputs.k = memory.keys.value();
  inputs.v = memory.values.value();
  const HeadShape shape = heads_->shape();
  inputs.heads = shape.heads;
  inputs.key_heads = shape.key_heads;
  inputs.value_heads = shape.value_heads;
  inputs.d_key = shape.d_key;
  inputs.d_value = shape.d_value;
  inputs.query_offsets = rows.ragged->offsets();
  inputs.key_offsets = memory.offsets;
  inputs.key_rows = memory.rows;
  inputs.scale = shape.scale;
  inputs.mask = mask;
  inputs.dropout = dropout_at(context, config_.weights_dropout, site_, rows);

  Observer* observer = context.observer;
  const bool observed = observer != nullptr && observer->wants_weights(name_);
  float* weights = observed || wanted != nullptr
                       ? context.tape.arena().array<float>(attention_weights_size(inputs)).data()
                       : nullptr;
  LearnedInputs learned;
  if (positions_) learned = positions_->bias(context, q, inputs.bias);
  learned.gates = gates(context, *rows.ragged, places);
  const Var outputs =
      context.at({name_, SitePart::kHeads},
                 {values_->apply(context.tape, q, memory.keys, memory.values, inputs, learned, weights),
                  heads(), places});
  if (weights != nullptr) {
    const ObservedWeights found{.name = name_,
                                .heads = heads(),
                                .query_offsets = inputs.query_offsets,
                                .key_offsets = inputs.key_offsets,
                                .weights = weights,
                                .values = inputs.key_rows.empty() ? inputs.v : ConstMatrixView(),
                                .output = outputs.value()};
    if (observed) observer->weights(found);
    if (wanted != nullptr) *wanted = found;
  }
  if (context.similarity != nullptr) record_head_similarity(context, q, memory, inputs, learned, outputs);
  return outputs;
}

void MultiHeadAttention::record_head_similarity(Context& context, Var q, const KeysAndValues& memory,
                                                const AttentionInputs& inputs, const LearnedInputs& learned,
                                                Var outputs) const {
  Tape& tape = context.tape;
  std::vector<Var>& sums = context.similarity->sums;
  const Disagreement form = context.similarity->form;
  if (has_part(form, Disagreement::kSubspace))
    sums.push_back(row_similarity(tape, memory.values, inputs.value_heads));
  if (has_part(form, Disagreement::kPositions))
    sums.push_back(map_similarity(tape, values_->maps(tape, q, memory.keys, inputs, learned), inputs));
  if (has_part(form, Disagreement::kOutput)) sums.push_back(row_similarity(tape, outputs, heads()));
}

ProjectedHeads MultiHeadAttention::project(Context& context, Var x, const RowPlaces& places) const {
  ProjectedHeads p = heads_->project(context, x);
  const HeadShape shape = heads_->shape();
  if (positions_) {
    p.q = positions_->turned(context, p.q, shape.heads, places);
    p.k = positions_->turned(context, p.k, shape.key_heads, places);
  }
  return {.q = context.at({name_, SitePart::kQueries}, {p.q, shape.heads, places}),
          .k = context.at({name_, SitePart::kKeys}, {p.k, shape.key_heads, places}),
          .v = context.at({name_, SitePart::kValues}, {p.v, shape.value_heads, places})};
}

Var MultiHeadAttention::self_heads(Context& context, Var x, const Sequences& rows, const Mask& mask,
                                   ObservedWeights* weights) const {
  for (const ProjectedTo to : {ProjectedTo::kQueries, ProjectedTo::kKeysAndValues}) show_rows(context, to, x);
  const std::span<const int32_t> offsets = rows.ragged->offsets();
  const RowPlaces places{.offsets = offsets};
  const ProjectedHeads p = project(context, x, places);
  return attend(context, p.q, rows, {.keys = p.k, .values = p.v, .offsets = offsets, .rows = {}}, mask,
                places, weights);
}

Var MultiHeadAttention::output_of(Context& context, Var heads) const {
  return output() != nullptr ? affine(context.tape, heads, *output()) : heads;
}

Var MultiHeadAttention::self(Context& context, Var x, const Sequences& rows, const Mask& mask,
                             ObservedWeights* weights) const {
  return output_of(context, self_heads(context, x, rows, mask, weights));
}

Var MultiHeadAttention::cross(Context& context, Var x, const Sequences& rows, Var memory,
                              std::span<const int32_t> offsets, ObservedWeights* weights) const {
  const KeysAndValues keys = project_memory(context, memory, offsets);
  const RowPlaces places{.offsets = rows.ragged->offsets()};
  const Var q = project_queries(context, x, places);
  return output_of(context, attend(context, q, rows, keys, Mask::none(), places, weights));
}

void MultiHeadAttention::share_positions(const MultiHeadAttention& other) {
  if (&other == this) return;
  positions_ = other.positions_;
  owns_positions_ = false;
}

void MultiHeadAttention::visit_sites(const SiteVisitor& visitor) const {
  const HeadShape shape = heads_->shape();
  const auto visit = [&](SitePart part, int heads, int64_t columns) {
    visitor({.name = Site{name_, part}.name(), .blocks = heads, .columns = columns});
  };
  visit(SitePart::kQueries, shape.heads, int64_t{shape.heads} * shape.d_key);
  visit(SitePart::kKeys, shape.key_heads, key_width());
  visit(SitePart::kValues, shape.value_heads, value_width());
  visit(SitePart::kGates, heads(), heads());
  visit(SitePart::kHeads, heads(), int64_t{heads()} * geometry().d_value);
}

void MultiHeadAttention::initialise(Random& random) {
  heads_->initialise(random);
  if (positions_ && owns_positions_) positions_->initialise(random);
  values_->initialise(random);
  if (output() != nullptr) initialise_output(geometry(), w_o_, random);
}

void MultiHeadAttention::visit(const std::string& name, const ConstParameterVisitor& visitor) const {
  // Heads walk over their parameters in one way only; who reads gets them as const.
  const_cast<MultiHeadAttention*>(this)->visit(name, ParameterVisitor(visitor));
}

void MultiHeadAttention::visit(const std::string& name, const ParameterVisitor& visitor) {
  heads_->visit(name, visitor);
  if (positions_ && owns_positions_) positions_->visit(name, visitor);
  values_->visit(name, visitor);
  if (w_o_.value.size() > 0) visitor(name + ".w_o", w_o_);
  if (b_o_.value.size() > 0) visitor(name + ".b_o", b_o_);
}

}  // namespace mh
