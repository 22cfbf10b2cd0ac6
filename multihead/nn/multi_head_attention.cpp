#include "multihead/nn/multi_head_attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/autograd/affine.h"
#include "multihead/autograd/ops.h"
#include "multihead/base/error.h"
#include "multihead/nn/attention_positions.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/weighted_values.h"

namespace mh {

MultiHeadAttention::MultiHeadAttention(std::string name, const MultiHeadAttentionConfig& config,
                                       DropoutStreams& streams)
    : name_(std::move(name)), config_(config), stream_(streams.next()) {
  HeadGeometry& geometry = config_.geometry;
  geometry = completed(geometry, config.d_model, name_);
  config_.d_out = output_size(geometry, config.d_model, config.d_out, name_);
  heads_ = make_heads(geometry, config.d_model, config.norm_epsilon);
  values_ = make_weighted_values(geometry, config.layer);
  if (const auto wrong = problems_of(config.positions, geometry, config.d_model); !wrong.empty()) {
    throw UsageError(fmt::format("{}: {}", name_, wrong[0]));
  }
  positions_ = config.positions == Positions::kDisentangled
                   ? make_disentangled_positions(config.disentangled, heads_->shape(), config.d_model,
                                                 config.norm_epsilon)
                   : make_attention_positions(config.positions, config.mask.direction(), heads_->shape(),
                                              config.d_model, softmaxes_per_head(geometry), config.rotary,
                                              config.buckets);
  if (geometry.output == HeadOutput::kConcatenation) return;
  w_o_ = Parameter(int64_t{geometry.heads} * geometry.d_value, config_.d_out);
  if (has_bias_of_output(geometry.biases)) b_o_ = Parameter(1, config_.d_out);
  output_ = std::make_unique<const Affine>(std::vector<const Parameter*>{&w_o_},
                                           has_bias_of_output(geometry.biases)
                                               ? std::vector<const Parameter*>{&b_o_}
                                               : std::vector<const Parameter*>());
  contribution_ =
      std::make_unique<const Affine>(std::vector<const Parameter*>{&w_o_}, std::vector<const Parameter*>());
}

MultiHeadAttention::~MultiHeadAttention() = default;

float MultiHeadAttention::scale() const {
  return heads_->shape().scale;
}

int64_t MultiHeadAttention::key_width() const {
  const HeadShape shape = heads_->shape();
  return int64_t{shape.key_heads} * shape.d_key;
}

int64_t MultiHeadAttention::value_width() const {
  const HeadShape shape = heads_->shape();
  return int64_t{shape.value_heads} * shape.d_value;
}

Var MultiHeadAttention::normed_and_turned(Context& context, HeadPart part, Var projected, bool turned,
                                          const RowPlaces& places) const {
  const bool queries = part == HeadPart::kQueries;
  const auto shown = [&](Var x, SitePart of_queries, SitePart of_keys) {
    if (context.sites == nullptr) return x;
    const auto blocks = static_cast<int>(heads_->shape().heads_of(part));
    return at(context, queries ? of_queries : of_keys, x, blocks, places);
  };
  Var x = shown(projected, SitePart::kProjectedQueries, SitePart::kProjectedKeys);
  x = heads_->normed(context, part, x);
  if (turned && positions_)
    x = positions_->turned(context, x, static_cast<int>(heads_->shape().heads_of(part)), places);
  return shown(x, SitePart::kQueries, SitePart::kKeys);
}

namespace {

/// [rows, cols], 1 in the columns of one head among `heads`, or in all others.
Var columns_of_head(Tape& tape, const MatrixView& like, int64_t heads, int head, bool others = false) {
  const MatrixView ones = tape.arena().matrix<float>(like.rows, like.cols);
  for (int64_t i = 0; i < ones.rows; ++i) {
    for (int64_t c = 0; c < ones.cols; ++c)
      ones(i, c) = (c / (ones.cols / heads) == head) != others ? 1.0f : 0.0f;
  }
  return tape.constant(ones);
}

}  // namespace

// Where the input of one head is another one, all heads are projected of it, and that head's columns are taken.
ProjectedHeads MultiHeadAttention::with_own_inputs(Context& context, Var x, const ProjectedHeads& projected,
                                                   const RowPlaces& places) const {
  if (context.sites == nullptr) return projected;
  Tape& tape = context.tape;
  const auto by_head = [&](SitePart part, int64_t heads, Var all, const auto& project) {
    for (int h = 0; all && h < heads; ++h) {
      const Site site{name_, part, h};
      if (!context.wants(site)) continue;
      const Var found = context.at(site, {.value = x, .rows = places});
      if (found == x) continue;
      const Var others = columns_of_head(tape, all.value(), heads, h, true);
      const Var own = columns_of_head(tape, all.value(), heads, h);
      all = ops::add(tape, ops::multiply(tape, all, others), ops::multiply(tape, project(found), own));
    }
    return all;
  };
  const HeadShape shape = heads_->shape();
  return {.q = by_head(SitePart::kQueryInput, shape.heads, projected.q,
                       [&](Var of) { return heads_->queries(context, of); }),
          .k = by_head(SitePart::kKeyInput, shape.key_heads, projected.k,
                       [&](Var of) { return heads_->keys_and_values(context, of).k; }),
          .v = by_head(SitePart::kValueInput, shape.value_heads, projected.v,
                       [&](Var of) { return heads_->keys_and_values(context, of).v; })};
}

Var MultiHeadAttention::project_queries(Context& context, Var x, const RowPlaces& places) const {
  x = at(context, SitePart::kAttentionInput, x, 1, places);
  const Var q = with_own_inputs(context, x, {.q = heads_->queries(context, x), .k = {}, .v = {}}, places).q;
  return normed_and_turned(context, HeadPart::kQueries, q, false, places);
}

KeysAndValues MultiHeadAttention::project_memory(Context& context, Var memory,
                                                 std::span<const int32_t> offsets) const {
  const RowPlaces places{.offsets = offsets};
  const Heads::KeysValues made = heads_->keys_and_values(context, memory);
  const ProjectedHeads both = with_own_inputs(context, memory, {.q = {}, .k = made.k, .v = made.v}, places);
  return {.keys = normed_and_turned(context, HeadPart::kKeys, both.k, false, places),
          .values = at(context, SitePart::kValues, both.v, heads_->shape().value_heads, places),
          .offsets = offsets,
          .rows = {}};
}

Var MultiHeadAttention::gates(Context& context, const Ragged& rows, const RowPlaces& places) const {
  const Site site{name_, SitePart::kGates};
  if (!context.wants(site)) return {};
  Tape& tape = context.tape;
  const MatrixView each = tape.arena().matrix<float>(rows.sequences(), heads());
  std::fill_n(each.data, each.size(), 1.0f);
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
                               const Mask& mask, const RowPlaces& places) const {
  AttentionInputs inputs;
  inputs.q = q.value();
  if (memory.keys) {
    inputs.k = memory.keys.value();
    inputs.v = memory.values.value();
  } else {
    inputs.half_k = memory.half_keys;
    inputs.half_v = memory.half_values;
  }
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
  inputs.soft_cap = geometry().soft_cap;
  inputs.mask = mask;
  inputs.dropout = dropout_at(context, config_.weights_dropout, stream_, rows);

  LearnedInputs learned;
  if (positions_) {
    const ScoredHeads scored{.heads = *heads_,
                             .q = q,
                             .k = memory.keys,
                             .query_offsets = rows.ragged->offsets(),
                             .key_offsets = memory.offsets};
    learned = positions_->bias(context, scored, inputs.bias);
  }
  learned.gates = gates(context, *rows.ragged, places);
  const HeadsOf whose{.context = context, .attention = name_, .places = places};
  return at(context, SitePart::kHeads, values_->apply(whose, q, memory.keys, memory.values, inputs, learned),
            heads(), places);
}

ProjectedHeads MultiHeadAttention::project(Context& context, Var x, const RowPlaces& places) const {
  x = at(context, SitePart::kAttentionInput, x, 1, places);
  const ProjectedHeads p = with_own_inputs(context, x, heads_->project(context, x), places);
  return {.q = normed_and_turned(context, HeadPart::kQueries, p.q, true, places),
          .k = normed_and_turned(context, HeadPart::kKeys, p.k, true, places),
          .v = at(context, SitePart::kValues, p.v, heads_->shape().value_heads, places)};
}

Var MultiHeadAttention::self_heads(Context& context, Var x, const Sequences& rows, const Mask& mask) const {
  const std::span<const int32_t> offsets = rows.ragged->offsets();
  const RowPlaces places{.offsets = offsets};
  const ProjectedHeads p = project(context, x, places);
  return attend(context, p.q, rows, {.keys = p.k, .values = p.v, .offsets = offsets, .rows = {}}, mask,
                places);
}

Var MultiHeadAttention::output_of(Context& context, Var heads) const {
  return output() != nullptr ? affine(context.tape, heads, *output()) : heads;
}

// What a head adds to the output is (0 ... z_h ... 0) W^O. Where that is changed, the output changes by the difference.
Var MultiHeadAttention::output_for_sites(Context& context, Var heads_side_by_side,
                                         const RowPlaces& places) const {
  if (context.sites == nullptr) return {};
  Tape& tape = context.tape;
  const Var z = heads_side_by_side;
  Var changes;  // their sum
  for (int h = 0; h < heads() && output() != nullptr; ++h) {
    const Site site{name_, SitePart::kContribution, h};
    if (!context.wants(site)) continue;
    const Var own = columns_of_head(tape, z.value(), heads(), h);
    const Var part = affine(tape, ops::multiply(tape, z, own), *contribution_);
    const Var found = context.at(site, {.value = part, .rows = places});
    if (found == part) continue;
    const Var change = ops::add(tape, found, ops::scale(tape, part, -1.0f));
    changes = changes ? ops::add(tape, changes, change) : change;
  }
  const Site site{name_, SitePart::kAttentionOutput};
  if (!changes && !context.wants(site)) return {};
  const Var y = output_of(context, z);
  return context.at(site, {.value = changes ? ops::add(tape, y, changes) : y, .rows = places});
}

Var MultiHeadAttention::self(Context& context, Var x, const Sequences& rows, const Mask& mask) const {
  const Var heads = self_heads(context, x, rows, mask);
  const Var asked = output_for_sites(context, heads, {.offsets = rows.ragged->offsets()});
  return asked ? asked : output_of(context, heads);
}

Var MultiHeadAttention::cross(Context& context, Var x, const Sequences& rows, Var memory,
                              std::span<const int32_t> offsets) const {
  const KeysAndValues keys = project_memory(context, memory, offsets);
  const RowPlaces places{.offsets = rows.ragged->offsets()};
  const Var q = project_queries(context, x, places);
  const Var heads = attend(context, q, rows, keys, Mask::none(), places);
  const Var asked = output_for_sites(context, heads, places);
  return asked ? asked : output_of(context, heads);
}

void MultiHeadAttention::share_positions(const MultiHeadAttention& other) {
  if (&other == this || (positions_ && positions_->share(*other.positions_))) return;
  positions_ = other.positions_;
  owns_positions_ = false;
}

void MultiHeadAttention::visit_sites(const SiteVisitor& visitor) const {
  const HeadShape shape = heads_->shape();
  const auto visit = [&](SitePart part, int blocks, int64_t columns) {
    visitor(SiteShape::of({name_, part}, columns, blocks));
  };
  const auto visit_each = [&](SitePart part, int heads, int64_t columns) {
    for (int h = 0; h < heads; ++h) visitor(SiteShape::of({name_, part, h}, columns));
  };
  visit(SitePart::kAttentionInput, 1, config_.d_model);
  visit_each(SitePart::kQueryInput, shape.heads, config_.d_model);
  visit_each(SitePart::kKeyInput, shape.key_heads, config_.d_model);
  visit_each(SitePart::kValueInput, shape.value_heads, config_.d_model);
  visit(SitePart::kProjectedQueries, shape.heads, int64_t{shape.heads} * shape.d_key);
  visit(SitePart::kProjectedKeys, shape.key_heads, key_width());
  visit(SitePart::kQueries, shape.heads, int64_t{shape.heads} * shape.d_key);
  visit(SitePart::kKeys, shape.key_heads, key_width());
  visit(SitePart::kValues, shape.value_heads, value_width());
  visit(SitePart::kGates, heads(), heads());
  visit_each(SitePart::kScores, shape.heads, 0);
  visit_each(SitePart::kWeights, heads(), 0);
  visit(SitePart::kHeads, heads(), int64_t{heads()} * geometry().d_value);
  if (output() != nullptr) visit_each(SitePart::kContribution, heads(), config_.d_out);
  visit(SitePart::kAttentionOutput, 1, config_.d_out);
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

void MultiHeadAttention::visit_shared(const std::string& name, const ConstParameterVisitor& visitor) const {
  if (!positions_) return;
  owns_positions_ ? positions_->visit_shared(name, ParameterVisitor(visitor))
                  : positions_->visit(name, ParameterVisitor(visitor));
}

void MultiHeadAttention::visit(const std::string& name, const ParameterVisitor& visitor) {
  heads_->visit(name, visitor);
  if (positions_ && owns_positions_) positions_->visit(name, visitor);
  values_->visit(name, visitor);
  if (w_o_.value.size() > 0) visitor(name + ".w_o", w_o_);
  if (b_o_.value.size() > 0) visitor(name + ".b_o", b_o_);
}

}  // namespace mh
