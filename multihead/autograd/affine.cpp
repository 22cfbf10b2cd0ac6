#include "multihead/autograd/affine.h"

#include <algorithm>

#include "multihead/kernels/gemm.h"
#include "multihead/kernels/gradient_product.h"

namespace mh {

Affine::Affine(std::vector<const Parameter*> weights, std::vector<const Parameter*> biases)
    : biases_(std::move(biases)) {
  MH_ASSERT(!weights.empty() && (biases_.parts().empty() || biases_.parts().size() == weights.size()));
  inputs_ = weights[0]->value.rows();
  for (const Parameter* weight : weights) {
    outputs_ += weight->value.cols();
    weight->read_by = ReadBy::kProduct;
  }
  weights_ = PackedParameters(std::move(weights));
}

ConstMatrixView Affine::bias() const {
  const auto parts = biases_.parts();
  if (parts.empty()) return {};
  if (parts.size() == 1) return parts[0]->value.view();
  const Tensor& joined = joined_bias_.get(biases_.versions(), [&](Tensor& made) {
    if (made.size() == 0) made = Tensor(1, outputs_);
    float* to = made.data();
    for (const Parameter* bias : parts) to = std::copy_n(bias->value.data(), bias->value.size(), to);
  });
  return joined.view();
}

void Affine::add_gradients(ConstMatrixView x, ConstMatrixView dy) const {
  int64_t column = 0;
  for (size_t i = 0; i < weights_.parts().size(); ++i) {
    const Parameter& weight = *weights_.parts()[i];
    const ConstMatrixView dy_i = dy.columns_between(column, column + weight.value.cols());
    multiply_transposed(x, dy_i, weight.gradient_sum(), Write::kAdd);
    if (!biases_.parts().empty()) column_sums(dy_i, biases_.parts()[i]->gradient_sum());
    column += weight.value.cols();
  }
}

namespace {

/// The norm as a backward pass takes it.
Norm norm_for_gradient(const Tape& tape, const NormParameters& parameters) {
  Norm norm = parameters.values();
  norm.held = tape.stream_alone();
  return norm;
}

/// The part of a batch-wide dropout that blocks of rows need: called inside the tasks of products.
void drop(const Dropout& settings, MatrixView rows, int64_t begin) {
  if (settings.active()) dropout(settings, rows, rows, begin);
}

}  // namespace

Var affine(Tape& tape, Var x, const Affine& parameters, const AffineOptions& options) {
  Var y = tape.make(x.rows(), parameters.outputs(), {x});
  const ConstMatrixView bias = parameters.bias();
  const Activation activation = options.activation;
  const Dropout drops = options.dropout;
  // The backward pass of relu reads signs off the output; the other activations need what went in.
  const bool keeps_input =
      activation != Activation::kNone && activation != Activation::kRelu && y.wants_gradient();
  const MatrixView input = keeps_input ? tape.arena().matrix<float>(y.rows(), y.cols()) : MatrixView();
  multiply(x.value(), parameters.weights().packed(), y.value(), Write::kOverwrite,
           [&](int64_t begin, int64_t end) {
             const MatrixView rows = y.value().rows_between(begin, end);
             add_bias(bias, rows);
             if (keeps_input) copy_or_add(rows, input.rows_between(begin, end), Write::kOverwrite);
             activate(activation, rows, rows);
             drop(drops, rows, begin);
           });
  // dz = activation'(z) * dropout(dy);  dx = dz W^T;  dW += x^T dz;  db += sum dz
  tape.record(y, [&tape, x, y, input, activation, drops, parameters = &parameters] {
    const MatrixView dz = y.gradient();
    const bool wanted = x.wants_gradient();
    const Tape::Target dx = wanted ? tape.gradient_of(x) : Tape::Target{};
    const auto make_rows = [&](int64_t begin, int64_t end) {
      const MatrixView rows = dz.rows_between(begin, end);
      drop(drops, rows, begin);
      const MatrixView z = input.data != nullptr ? input : y.value();
      (tape.stream_alone() ? activation_factor : activation_gradient)(activation, z.rows_between(begin, end),
                                                                      rows, rows);
    };
    if (wanted) {
      multiply_gradient(dz, parameters->weights().gradient(), dx.gradient, dx.write, make_rows);
    } else if (activation != Activation::kNone || drops.active()) {
      for_row_blocks(dz.rows, make_rows);
    }
    if (tape.trains()) parameters->add_gradients(x.value(), dz);
  });
  return y;
}

Var gated_affine(Tape& tape, Var x, const Affine& parameters, const AffineOptions& options) {
  const int64_t width = parameters.outputs() / 2;
  MH_ASSERT(parameters.outputs() == 2 * width);
  Var y = tape.make(x.rows(), width, {x});
  const ConstMatrixView bias = parameters.bias();
  const Activation activation = options.activation;
  const Dropout drops = options.dropout;
  const auto finish = [&](MatrixView rows, int64_t begin, int64_t end) {
    const MatrixView out = y.value().rows_between(begin, end);
    add_bias(bias, rows);
    activate(activation, rows.columns_between(0, width), out);
    multiply_elements(rows.columns_between(width, 2 * width), out);
    drop(drops, out, begin);
  };
  const PackedMatrix& packed = parameters.weights().packed();
  if (!y.wants_gradient() && !detail::by_panels(x.rows())) {
    multiply_and_use(x.value(), packed, finish);
    return y;
  }
  // [z | u], before the activation: what the backward pass needs; otherwise scratch.
  const MatrixView halves = tape.arena().matrix<float>(x.rows(), 2 * width);
  multiply(x.value(), packed, halves, Write::kOverwrite,
           [&](int64_t begin, int64_t end) { finish(halves.rows_between(begin, end), begin, end); });
  // With dh = dropout(dy):  dz = activation'(z) * u * dh;  du = activation(z) * dh;  then as affine()
  tape.record(y, [&tape, x, y, halves, width, activation, drops, parameters = &parameters] {
    const MatrixView dy = y.gradient();
    const bool wanted = x.wants_gradient();
    const Tape::Target dx = wanted ? tape.gradient_of(x) : Tape::Target{};
    const Arena::Mark mark = tape.arena().mark();
    const MatrixView d_halves = tape.arena().matrix<float>(dy.rows, 2 * width);
    const auto make_rows = [&](int64_t begin, int64_t end) {
      const MatrixView dh = dy.rows_between(begin, end), rows = halves.rows_between(begin, end),
                       to = d_halves.rows_between(begin, end);
      drop(drops, dh, begin);
      const MatrixView z = rows.columns_between(0, width), u = rows.columns_between(width, 2 * width),
                       dz = to.columns_between(0, width), du = to.columns_between(width, 2 * width);
      activate(activation, z, du);
      multiply_elements(dh, du);
      multiply_elements(u, dh);
      activation_gradient(activation, z, dh, dz);
    };
    if (wanted) {
      multiply_gradient(d_halves, parameters->weights().gradient(), dx.gradient, dx.write, make_rows);
    } else {
      for_row_blocks(dy.rows, make_rows);
    }
    if (tape.trains()) parameters->add_gradients(x.value(), d_halves);
    tape.arena().rewind(mark);
  });
  return y;
}

namespace {

/// Sums of gain's and bias's gradients by blocks of rows, merged in order: the same for any number of
/// threads.
class NormGradients {
 public:
  NormGradients(Tape& tape, int64_t rows, int64_t cols)
      : cols_(cols),
        blocks_((rows + kRowsPerTask - 1) / kRowsPerTask),
        mark_(tape.arena().mark()),
        arena_(tape.arena()) {
    sums_ = arena_.matrix<float>(blocks_, 2 * cols);
    std::fill_n(sums_.data, sums_.size(), 0.0f);
  }
  ~NormGradients() { arena_.rewind(mark_); }
  NormGradients(const NormGradients&) = delete;
  NormGradients& operator=(const NormGradients&) = delete;

  float* gain(int64_t first_row) { return sums_.row(first_row / kRowsPerTask); }
  float* bias(int64_t first_row) { return gain(first_row) + cols_; }
  void add_to(const NormParameters& norm) {
    float* gain_sum = norm.gain->gradient_sum().data;
    float* bias_sum = norm.bias != nullptr ? norm.bias->gradient_sum().data : nullptr;
    for (int64_t b = 0; b < blocks_; ++b) {
      const float* block = sums_.row(b);
      for (int64_t c = 0; c < cols_; ++c) gain_sum[c] += block[c];
      if (bias_sum == nullptr) continue;
      for (int64_t c = 0; c < cols_; ++c) bias_sum[c] += block[cols_ + c];
    }
  }

 private:
  int64_t cols_, blocks_;
  Arena::Mark mark_;
  Arena& arena_;
  MatrixView sums_;
};

/// parameters null: x stands for x W + b.
Var residual_op(Tape& tape, Var x, const Affine* parameters, Var residual, const Dropout& dropout,
                const NormParameters* norm) {
  const int64_t rows = x.rows(), cols = parameters != nullptr ? parameters->outputs() : x.cols();
  MH_ASSERT(residual.rows() == rows && residual.cols() == cols);
  Var y = tape.make(rows, cols, {x, residual});
  const Dropout drops = dropout;
  const NormParameters norms = norm != nullptr ? *norm : NormParameters{};
  const bool normed = norm != nullptr;
  // The sum before the norm, and each row's statistics, are what the backward pass needs.
  const bool kept = normed && y.wants_gradient();
  const MatrixView sum = kept ? tape.arena().matrix<float>(rows, cols) : y.value();
  float* mean = kept ? tape.arena().array<float>(rows).data() : nullptr;
  float* inverse_deviation = kept ? tape.arena().array<float>(rows).data() : nullptr;
  const ConstMatrixView bias = parameters != nullptr ? parameters->bias() : ConstMatrixView();
  const PackedMatrix* packed = parameters != nullptr ? &parameters->weights().packed() : nullptr;
  const auto after_product = [&](int64_t begin, int64_t end) {
    const MatrixView block = sum.rows_between(begin, end);
    add_bias(bias, block);
    drop(drops, block, begin);
    copy_or_add(residual.value().rows_between(begin, end), block, Write::kAdd);
    if (normed) {
      mh::normalise(norms.values(), block, y.value().rows_between(begin, end), kept ? mean + begin : nullptr,
                    kept ? inverse_deviation + begin : nullptr);
    }
  };
  if (packed != nullptr) {
    multiply(x.value(), *packed, sum, Write::kOverwrite, after_product);
  } else {
    for_row_blocks(rows, [&](int64_t begin, int64_t end) {
      copy_or_add(x.value().rows_between(begin, end), sum.rows_between(begin, end), Write::kOverwrite);
      after_product(begin, end);
    });
  }
  // ds = Norm'(s) dy;  d residual = ds;  dz = dropout(ds);  dx = dz W^T;  dW += x^T dz;  db += sum dz
  tape.record(y, [&tape, x, y, residual, sum, mean, inverse_deviation, drops, norms, normed, parameters] {
    const MatrixView dz = y.gradient();
    const auto target = [&](Var v) { return v.wants_gradient() ? tape.gradient_of(v) : Tape::Target{}; };
    const Tape::Target d_residual = target(residual), dx = target(x);
    const bool wanted = dx.gradient.data != nullptr;
    NormGradients norm_gradients(tape, dz.rows, dz.cols);
    const auto make_rows = [&](int64_t begin, int64_t end) {
      const MatrixView block = dz.rows_between(begin, end);
      if (normed) {
        normalise_gradient(norm_for_gradient(tape, norms), sum.rows_between(begin, end), mean + begin,
                           inverse_deviation + begin, block, block, norm_gradients.gain(begin),
                           norm_gradients.bias(begin));
      }
      if (d_residual.gradient.data != nullptr) {
        copy_or_add(block, d_residual.gradient.rows_between(begin, end), d_residual.write);
      }
      drop(drops, block, begin);
      if (wanted && parameters == nullptr) copy_or_add(block, dx.gradient.rows_between(begin, end), dx.write);
    };
    if (wanted && parameters != nullptr) {
      multiply_gradient(dz, parameters->weights().gradient(), dx.gradient, dx.write, make_rows);
    } else {
      for_row_blocks(dz.rows, make_rows);
    }
    if (normed && tape.trains()) norm_gradients.add_to(norms);
    if (parameters != nullptr && tape.trains()) parameters->add_gradients(x.value(), dz);
  });
  return y;
}

}  // namespace

Var affine_residual(Tape& tape, Var x, const Affine& parameters, Var residual, const Dropout& dropout,
                    const NormParameters* norm) {
  return residual_op(tape, x, &parameters, residual, dropout, norm);
}

Var add_residual(Tape& tape, Var x, Var residual, const Dropout& dropout, const NormParameters* norm) {
  return residual_op(tape, x, nullptr, residual, dropout, norm);
}

Var normalise(Tape& tape, Var x, const NormParameters& norm, const Dropout& dropout) {
  Var y = tape.make(x.rows(), x.cols(), {x});
  const bool kept = y.wants_gradient();
  const Dropout drops = dropout;
  float* mean = kept ? tape.arena().array<float>(x.rows()).data() : nullptr;
  float* inverse_deviation = kept ? tape.arena().array<float>(x.rows()).data() : nullptr;
  for_row_blocks(x.rows(), [&](int64_t begin, int64_t end) {
    const MatrixView block = y.value().rows_between(begin, end);
    mh::normalise(norm.values(), x.value().rows_between(begin, end), block, kept ? mean + begin : nullptr,
                  kept ? inverse_deviation + begin : nullptr);
    drop(drops, block, begin);
  });
  tape.record(y, [&tape, x, y, mean, inverse_deviation, norm, drops] {
    const MatrixView dy = y.gradient();
    const Tape::Target dx = x.wants_gradient() ? tape.gradient_of(x) : Tape::Target{};
    NormGradients norm_gradients(tape, dy.rows, dy.cols);
    for_row_blocks(dy.rows, [&](int64_t begin, int64_t end) {
      const MatrixView block = dy.rows_between(begin, end);
      drop(drops, block, begin);
      normalise_gradient(norm_for_gradient(tape, norm), x.value().rows_between(begin, end), mean + begin,
                         inverse_deviation + begin, block, block, norm_gradients.gain(begin),
                         norm_gradients.bias(begin));
      if (dx.gradient.data != nullptr) copy_or_add(block, dx.gradient.rows_between(begin, end), dx.write);
    });
    if (tape.trains()) norm_gradients.add_to(norm);
  });
  return y;
}

}  // namespace mh
