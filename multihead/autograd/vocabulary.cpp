#include "multihead/autograd/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "multihead/kernels/elementwise.h"
#include "multihead/kernels/embedding.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/gradient_product.h"
#include "multihead/kernels/soft_cap.h"
#include "multihead/kernels/vocabulary.h"

namespace mh {

Var embed(Tape& tape, const Parameter& table, std::span<const int32_t> ids, const EmbedOptions& options) {
  Var y = tape.make(static_cast<int64_t>(ids.size()), table.value.cols(), {});
  for_row_blocks(y.rows(), [&](int64_t begin, int64_t end) {
    const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
    const MatrixView block = y.value().rows_between(begin, end);
    const auto positions_of =
        options.positions.cols == 0 ? std::span<const int32_t>() : options.positions_of.subspan(first, count);
    if (table.value.is_converted()) {
      // Row i of what is needed is that of token ids[first + i].
      Tensor rows(end - begin, y.cols());
      std::vector<int32_t> in_order(count);
      std::iota(in_order.begin(), in_order.end(), 0);
      for (int64_t i = begin; i < end; ++i)
        table.value.read_row(ids[static_cast<size_t>(i)], rows.view().row(i - begin));
      embed(StoredMatrix::of(std::as_const(rows).view()), in_order, options.scale, options.positions,
            positions_of, block);
    } else {
      embed(table.value.stored(), ids.subspan(first, count), options.scale, options.positions, positions_of,
            block);
    }
    for (int64_t i = begin; options.types != nullptr && i < end; ++i) {
      const float* type = options.types->value.view().row(options.types_of[static_cast<size_t>(i)]);
      for (int64_t c = 0; c < y.cols(); ++c) y.value()(i, c) += type[c];
    }
    if (options.dropout.active()) dropout(options.dropout, block, block, begin);
  });
  tape.record(y, [y, ids, options, table = &table] {
    if (options.dropout.active()) dropout(options.dropout, y.gradient(), y.gradient());
    embed_gradient(ids, options.scale, y.gradient(), table->gradient_sum());
    if (options.learned_positions != nullptr) {
      embed_gradient(options.positions_of, 1, y.gradient(), options.learned_positions->gradient_sum());
    }
    if (options.types != nullptr)
      embed_gradient(options.types_of, 1, y.gradient(), options.types->gradient_sum());
  });
  return y;
}

Var logits(Tape& tape, Var states, const OutputParameters& output) {
  const PackedParameters& table = output.table;
  MH_ASSERT(table.parts().size() == 1);
  Var y = tape.make(states.rows(), table.parts()[0]->value.rows(), {states});
  multiply(states.value(), table.packed(), y.value(), Write::kOverwrite, [&](int64_t begin, int64_t end) {
    const MatrixView rows = y.value().rows_between(begin, end);
    add_bias(output.bias, rows);
    if (output.soft_cap) soft_cap(*output.soft_cap, rows, rows);
  });
  // dstates = dy E;  dE += dy^T states, with the dy of what was capped
  tape.record(y, [&tape, states, y, table = &table, cap = output.soft_cap] {
    const Arena::Mark mark = tape.arena().mark();
    MatrixView dy = y.gradient();
    if (cap) {
      dy = tape.arena().matrix<float>(y.rows(), y.cols());
      for_row_blocks(y.rows(), [&](int64_t begin, int64_t end) {
        (tape.stream_alone() ? soft_cap_factor : soft_cap_gradient)(*cap, y.value().rows_between(begin, end),
                                                                    y.gradient().rows_between(begin, end),
                                                                    dy.rows_between(begin, end));
      });
    }
    if (states.wants_gradient()) {
      const Tape::Target to = tape.gradient_of(states);
      multiply_gradient(dy, table->gradient(), to.gradient, to.write, [](int64_t, int64_t) {});
    }
    if (tape.trains())
      multiply_transposed(dy, states.value(), table->parts()[0]->gradient_sum(), Write::kAdd);
    tape.arena().rewind(mark);
  });
  return y;
}

// y_i = states_i E_t^T + bias_t, t = tokens_i;  dstates_i = dy_i E_t;  dE_t += dy_i states_i, with the dy of what was capped
Var logits_of(Tape& tape, Var states, std::span<const int32_t> tokens, const OutputParameters& output) {
  const Parameter* const table = output.table.parts()[0];
  const int64_t rows = states.rows(), d = states.cols();
  MH_ASSERT(std::ssize(tokens) == rows);
  const MatrixView of_tokens = tape.arena().matrix<float>(rows, d);
  const std::span<int32_t> kept = tape.arena().array<int32_t>(rows);
  std::copy(tokens.begin(), tokens.end(), kept.begin());
  Var y = tape.make(rows, 1, {states});
  for (int64_t i = 0; i < rows; ++i) {
    const int32_t token = tokens[static_cast<size_t>(i)];
    table->value.read_row(token, of_tokens.row(i));
    const float *x = states.value().row(i), *e = of_tokens.row(i);
    double sum = output.bias.cols > 0 ? static_cast<double>(output.bias(0, token)) : 0;
    for (int64_t c = 0; c < d; ++c) sum += static_cast<double>(x[c]) * static_cast<double>(e[c]);
    y.value()(i, 0) = static_cast<float>(sum);
  }
  if (output.soft_cap) soft_cap(*output.soft_cap, y.value(), y.value());
  tape.record(y, [&tape, states, y, of_tokens, kept, table, cap = output.soft_cap] {
    const Arena::Mark mark = tape.arena().mark();
    const MatrixView dy = tape.arena().matrix<float>(y.rows(), 1);
    std::copy_n(y.gradient().data, dy.rows, dy.data);
    if (cap) (tape.stream_alone() ? soft_cap_factor : soft_cap_gradient)(*cap, y.value(), dy, dy);
    const Tape::Target to = states.wants_gradient() ? tape.gradient_of(states) : Tape::Target{};
    for (int64_t i = 0; i < dy.rows; ++i) {
      for (int64_t c = 0; c < of_tokens.cols; ++c) {
        if (to.gradient.data != nullptr) {
          const float share = dy(i, 0) * of_tokens(i, c);
          to.gradient(i, c) = to.write == Write::kAdd ? to.gradient(i, c) + share : share;
        }
        if (tape.trains())
          table->gradient_sum()(kept[static_cast<size_t>(i)], c) += dy(i, 0) * states.value()(i, c);
      }
    }
    tape.arena().rewind(mark);
  });
  return y;
}

Var cross_entropy(Tape& tape, Var states, const OutputParameters& output, const CrossEntropyOptions& options,
                  VocabularyScratch& scratch, CrossEntropySums& sums) {
  const PackedParameters& table = output.table;
  MH_ASSERT(table.parts().size() == 1);
  Var loss = tape.make(1, 1, {states});
  const bool gradients = loss.wants_gradient() && states.wants_gradient();
  CrossEntropy problem{.states = states.value(),
                       .targets = options.targets,
                       .label_smoothing = options.label_smoothing,
                       .scale = options.scale,
                       .d_states = {},
                       .d_embedding = {}};
  OutputLayer layer{.logits = &table.packed(), .bias = output.bias, .soft_cap = output.soft_cap};
  if (gradients) {
    layer.gradient.emplace(table.gradient());
    if (tape.trains()) {
      const Tape::Target target = tape.gradient_of(states);
      MH_ASSERT(target.write == Write::kOverwrite);
      problem.d_states = target.gradient;
      problem.d_embedding = table.parts()[0]->gradient_sum();
    } else {
      problem.d_states = tape.arena().matrix<float>(states.rows(), states.cols());
    }
  }
  sums = cross_entropy(layer, problem, scratch);
  loss.value()(0, 0) = static_cast<float>(sums.smoothed * options.scale);
  tape.record(loss, [&tape, loss, states, d_states = problem.d_states] {
    const float by = loss.gradient()(0, 0);
    if (tape.trains()) {
      if (by == 1) return;
      throw UsageError(
          fmt::format("cross entropy: its gradient is {}, and the loss may only enter the total with factor "
                      "1; give the factor as its `scale`",
                      by));
    }
    const Tape::Target to = tape.gradient_of(states);
    for (int64_t i = 0; i < states.rows(); ++i) {
      for (int64_t c = 0; c < states.cols(); ++c) {
        float& d = to.gradient(i, c);
        d = to.write == Write::kAdd ? d + by * d_states(i, c) : by * d_states(i, c);
      }
    }
  });
  return loss;
}

}  // namespace mh
