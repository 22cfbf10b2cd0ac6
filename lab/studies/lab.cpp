#include "lab/studies/lab.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "multihead/autograd/affine.h"
#include "multihead/base/error.h"
#include "multihead/base/ragged.h"

namespace mh::lab {

Matrix random_matrix(int64_t rows, int64_t cols, Random& random, double deviation) {
  Matrix a(rows, cols);
  for (int64_t i = 0; i < a.size(); ++i) a.data()[i] = deviation * random.normal();
  return a;
}

Matrix random_rotation(int64_t n, Random& random) {
  return qr(random_matrix(n, n, random).view()).q;
}

Matrix product_transposed(const Matrix& a, const Matrix& b) {
  return product(a, transposed(b));
}

Matrix sum(const Matrix& a, const Matrix& b, double factor) {
  Matrix c(a.rows(), a.cols());
  for (int64_t i = 0; i < c.size(); ++i) c.data()[i] = a.data()[i] + factor * b.data()[i];
  return c;
}

Matrix scaled(Matrix a, double factor) {
  for (int64_t i = 0; i < a.size(); ++i) a.data()[i] *= factor;
  return a;
}

Matrix columns(const Matrix& a, int64_t begin, int64_t end) {
  Matrix part(a.rows(), end - begin);
  for (int64_t i = 0; i < a.rows(); ++i)
    std::copy_n(a.data() + i * a.cols() + begin, end - begin, &part(i, 0));
  return part;
}

Matrix beside(const std::vector<Matrix>& parts) {
  int64_t cols = 0;
  for (const Matrix& part : parts) cols += part.cols();
  Matrix all(parts.front().rows(), cols);
  int64_t at = 0;
  for (const Matrix& part : parts) {
    for (int64_t i = 0; i < all.rows(); ++i)
      std::copy_n(part.data() + i * part.cols(), part.cols(), &all(i, at));
    at += part.cols();
  }
  return all;
}

double largest(const Matrix& a) {
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a.data()[i]));
  return most;
}

double largest_difference(const Matrix& a, const Matrix& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return std::numeric_limits<double>::infinity();
  return largest(sum(a, b, -1));
}

double relative_difference(const Matrix& found, const Matrix& expected) {
  return largest_difference(found, expected) / largest(expected);
}

namespace {

/// Of the matrices as vectors.
double dot(const Matrix& a, const Matrix& b) {
  return std::inner_product(a.data(), a.data() + a.size(), b.data(), 0.0);
}

}  // namespace

double norm(const Matrix& a) {
  return std::sqrt(dot(a, a));
}

double cosine(const Matrix& a, const Matrix& b) {
  const double lengths = norm(a) * norm(b);
  return lengths > 0 ? dot(a, b) / lengths : 0;
}

Matrix softmax_rows(Matrix scores) {
  for (int64_t i = 0; i < scores.rows(); ++i) {
    double* row = &scores(i, 0);
    const double most = *std::max_element(row, row + scores.cols());
    double total = 0;
    for (int64_t j = 0; j < scores.cols(); ++j) total += row[j] = std::exp(row[j] - most);
    for (int64_t j = 0; j < scores.cols(); ++j) row[j] /= total;
  }
  return scores;
}

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return (numbers[(numbers.size() - 1) / 2] + numbers[numbers.size() / 2]) / 2;
}

std::vector<Head> random_heads(const HeadSizes& s, Random& random) {
  std::vector<Head> heads;
  const double in = 1 / std::sqrt(s.d_model), out = 1 / std::sqrt(s.heads * s.d_value);
  for (int h = 0; h < s.heads; ++h) {
    heads.push_back({.q = random_matrix(s.d_model, s.d_key, random, in),
                     .k = random_matrix(s.d_model, s.d_key, random, in),
                     .v = random_matrix(s.d_model, s.d_value, random, in),
                     .o = random_matrix(s.d_value, s.d_model, random, out)});
  }
  return heads;
}

Matrix scores(const Matrix& x, const Head& head) {
  return product_transposed(product(x, head.q), product(x, head.k));
}

Matrix weights(const Matrix& x, const Head& head, double scale) {
  return softmax_rows(scaled(scores(x, head), scale));
}

Matrix multi_head(const Matrix& x, const std::vector<Head>& heads, double scale) {
  Matrix y(x.rows(), heads.front().o.cols());
  for (const Head& head : heads)
    y = sum(y, product(product(weights(x, head, scale), product(x, head.v)), head.o));
  return y;
}

Layer::Layer(const HeadGeometry& geometry, int d_model, uint64_t seed)
    : attention_("layer", {.d_model = d_model, .geometry = geometry}, streams_) {
  Random random(seed);
  attention_.initialise(random);
}

std::vector<NamedParameter> Layer::parameters() {
  std::vector<NamedParameter> all;
  attention_.visit("", [&](const std::string& full, Parameter& p) { all.push_back({full.substr(1), &p}); });
  return all;
}

Parameter& Layer::find(const std::string& name) {
  for (const NamedParameter& known : parameters()) {
    if (known.name == name) return *known.parameter;
  }
  throw UsageError("the layer has no parameter " + name);
}

void Layer::set(const std::string& name, const Matrix& value) {
  Parameter& p = find(name);
  if (p.value.rows() != value.rows() || p.value.cols() != value.cols()) throw ShapeError("set " + name);
  p.value = in_float(value);
  p.changed();
}

int64_t Layer::parameter_count() {
  int64_t count = 0;
  for (const NamedParameter& known : parameters()) count += known.parameter->value.size();
  return count;
}

void Layer::clear_gradients() {
  for (const NamedParameter& known : parameters()) known.parameter->gradient.forget();
}

namespace {

/// A pass over one sentence.
struct Pass {
  explicit Pass(const Matrix& x, Tape::Mode mode = Tape::Mode::kEvaluate)
      : rows(in_float(x)),
        ragged(Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(x.rows())})),
        tape(mode) {}

  /// d(sum of seed * y) / d(input).
  Matrix gradient_from(Var y, const Tensor& seed) {
    tape.seed(y, seed.view());
    tape.backward();
    return in_double(tape.gradient_of(input).gradient);
  }

  Tensor rows;
  Ragged ragged;
  Sequences sequences{.ids = {}, .ragged = &ragged, .sentences = {}};
  Tape tape;
  Context context{.tape = tape};
  Var input = tape.constant(rows.view(), Tape::Gradient::kWants);
};

}  // namespace

Matrix Layer::heads(const Matrix& x) {
  Pass pass(x);
  return in_double(attention_.self_heads(pass.context, pass.input, pass.sequences, Mask::none()).value());
}

Matrix Layer::output(const Matrix& x) {
  Pass pass(x);
  return in_double(attention_.self(pass.context, pass.input, pass.sequences, Mask::none()).value());
}

double Layer::forward_seconds(const Matrix& x) {
  std::vector<double> seconds;
  for (int repeat = 0; repeat < 15; ++repeat) {
    Pass pass(x);
    const auto start = std::chrono::steady_clock::now();
    attention_.self(pass.context, pass.input, pass.sequences, Mask::none());
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return median(std::move(seconds));
}

Matrix Layer::input_gradient(const Matrix& x, const Matrix& seed) {
  Pass pass(x, Tape::Mode::kRecord);
  const Var y = attention_.self_heads(pass.context, pass.input, pass.sequences, Mask::none());
  return pass.gradient_from(y, in_float(seed));
}

void Layer::output_gradients(const Matrix& x, const Matrix& seed) {
  Pass pass(x, Tape::Mode::kRecord);
  const Var y = attention_.self(pass.context, pass.input, pass.sequences, Mask::none());
  pass.gradient_from(y, in_float(seed));
}

Matrix stack_gradient(const std::vector<std::unique_ptr<Layer>>& layers, const Matrix& x, int64_t row,
                      const Mask& mask) {
  Pass pass(x, Tape::Mode::kRecord);
  Var h = pass.input;
  for (const auto& layer : layers) {
    const MultiHeadAttention& attention = layer->attention();
    const Var heads = attention.self_heads(pass.context, h, pass.sequences, mask);
    h = affine_residual(pass.tape, heads, *attention.output(), h, {}, nullptr);
  }
  Tensor seed(x.rows(), x.cols());
  std::fill_n(seed.view().row(row), x.cols(), 1.0f);
  return pass.gradient_from(h, seed);
}

}  // namespace mh::lab
