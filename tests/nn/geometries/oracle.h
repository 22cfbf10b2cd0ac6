// The formulas of a geometry, written for the tests without code of the library: in double, and in numbers
// that count operations. The test file of each geometry defines and registers its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "multihead/base/ragged.h"
#include "multihead/kernels/mask.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/linear_algebra.h"
#include "tests/nn/geometries/counted.h"

namespace mh::test {

using D = BasicTensor<double>;
using Parameters = std::map<std::string, D>;  // "w_q", "b_o", ...

inline Parameters parameters_of(MultiHeadAttention& layer) {
  Parameters found;
  layer.visit(
      "", [&](const std::string& name, Parameter& p) { found[name.substr(1)] = in_double(p.value.view()); });
  return found;
}

inline D product(const D& a, const D& b) {
  D c(a.rows(), b.cols());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t n = 0; n < a.cols(); ++n) {
      for (int64_t j = 0; j < b.cols(); ++j) c(i, j) += a(i, n) * b(n, j);
    }
  }
  return c;
}

/// Adds parameter `name`, if the layer has it, to every row of columns [begin, begin + a.cols()).
inline void add_bias_of(const Parameters& p, const std::string& name, int64_t begin, D& a) {
  const auto found = p.find(name);
  if (found == p.end()) return;
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t c = 0; c < a.cols(); ++c) a(i, c) += found->second(0, begin + c);
  }
}

inline D columns_of(const D& a, int64_t begin, int64_t end) {
  D part(a.rows(), end - begin);
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t c = begin; c < end; ++c) part(i, c - begin) = a(i, c);
  }
  return part;
}

inline D rows_of(const D& a, int64_t begin, int64_t end) {
  D part(end - begin, a.cols());
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t c = 0; c < a.cols(); ++c) part(i - begin, c) = a(i, c);
  }
  return part;
}

/// A layer whose formula is asked for. geometry: completed.
struct Layer {
  const HeadGeometry& geometry;
  int d_model;
  const Parameters& parameters;
};

/// Head `head` of x W + b, `size` numbers: W is parameter "w_LETTER", b is "b_LETTER", heads side by side.
inline D projected(const Layer& layer, const D& x, const std::string& letter, int head, int size) {
  const int64_t begin = int64_t{head} * size;
  D out = product(x, columns_of(layer.parameters.at("w_" + letter), begin, begin + size));
  add_bias_of(layer.parameters, "b_" + letter, begin, out);
  return out;
}

/// The same of rows of any value, of all heads, in numbers that count.
inline Rows counted_projection(const HeadGeometry& g, const Rows& x, int64_t outputs) {
  Rows out = product(x, zeros(static_cast<int64_t>(x[0].size()), outputs));
  if (g.biases != Biases::kNone) add_bias_to(out);
  return out;
}

/// How queries, keys and values come about; as written here, of canonical heads. head: of softmaxes, or of
/// what they share.
class HeadOracle {
 public:
  virtual ~HeadOracle() = default;
  virtual D query(const Layer& layer, const D& x, int head) const {
    return projected(layer, x, "q", head, layer.geometry.d_key);
  }
  virtual D key(const Layer& layer, const D& memory, int head) const {
    return projected(layer, memory, "k", head * layer.geometry.key_heads / layer.geometry.heads,
                     layer.geometry.d_key);
  }
  virtual D value(const Layer& layer, const D& memory, int head) const {
    return projected(layer, memory, "v", head, layer.geometry.d_value);
  }

  /// Numbers that meet in a score, and heads of keys, a softmax each where heads have several.
  virtual int score_size(const HeadGeometry& g, int /*d_model*/) const { return g.d_key; }
  virtual int key_heads(const HeadGeometry& g, int softmaxes_of_a_head) const {
    return softmaxes_of_a_head * g.key_heads;
  }
  virtual Rows counted_queries(const HeadGeometry& g, const Rows& x, int softmaxes) const {
    return counted_projection(g, x, int64_t{softmaxes} * g.d_key);
  }
  /// queries: of the same rows, or empty.
  virtual Rows counted_keys(const HeadGeometry& g, const Rows& memory, int heads,
                            const Rows& /*queries*/) const {
    return counted_projection(g, memory, int64_t{heads} * g.d_key);
  }
  virtual Rows counted_values(const HeadGeometry& g, const Rows& memory) const {
    return counted_projection(g, memory, int64_t{g.value_heads} * g.d_value);
  }
};

/// A number for each head, query and key of one sequence.
using Maps = std::vector<D>;

/// The softmax of each row; `first`: the row of the batch that row 0 is.
inline Maps softmax_of(const Maps& scores, const Mask& mask, int64_t first) {
  Maps out;
  for (const D& map : scores) {
    D& weights = out.emplace_back(map.rows(), map.cols());
    for (int64_t i = 0; i < map.rows(); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < map.cols(); ++j) {
        if (mask.allows(first + i, i, j, map.rows(), map.cols())) weights(i, j) = std::exp(map(i, j));
        sum += weights(i, j);
      }
      for (int64_t j = 0; j < map.cols() && sum > 0; ++j) weights(i, j) /= sum;
    }
  }
  return out;
}

/// What values are weighed with; as written here, the softmax of the scores.
class WeightOracle {
 public:
  virtual ~WeightOracle() = default;
  virtual int softmaxes() const { return 1; }  // of a head
  /// From the scores of all softmaxes of a sequence, whose first row is row `first` of the batch.
  virtual Maps weights(const Parameters&, Maps scores, const Mask& mask, int64_t first) const {
    return softmax_of(scores, mask, first);
  }
  /// What becomes of a head's output.
  virtual void finish(const Parameters&, D& /*out*/) const {}

  /// Whether what the mask hides is computed, too.
  virtual bool composed() const { return false; }
  virtual std::vector<Rows> counted_scores(std::vector<Rows> scores) const { return scores; }
  virtual std::vector<Rows> counted_weights(std::vector<Rows> weights) const { return weights; }
  virtual Rows counted_output(const HeadGeometry&, Rows averages) const { return averages; }
};

/// What is done to queries and keys; as written here, queries are scaled.
class QueryKeyOracle {
 public:
  virtual ~QueryKeyOracle() = default;
  virtual D query(const Layer& layer, D q) const {
    for (int64_t n = 0; n < q.size(); ++n) q.data()[n] *= *layer.geometry.scale;
    return q;
  }
  virtual D key(const Layer&, D k) const { return k; }

  virtual bool scales_scores() const { return true; }
  virtual void count(Rows& /*rows*/, size_t /*size*/) const {}
};

/// The oracle of each way, which the ways' files register before any test runs.
template <class Oracle, class Way>
std::map<Way, const Oracle*>& oracles() {
  static std::map<Way, const Oracle*> all;
  return all;
}
template <class Oracle, class Way>
struct Registered {
  Registered(Way way, const Oracle& oracle) { oracles<Oracle, Way>()[way] = &oracle; }
};

inline const HeadOracle& head_oracle(const HeadGeometry& g) {
  if (g.input.kind != HeadInput::Kind::kWholeRow)
    return *oracles<HeadOracle, HeadInput::Kind>().at(g.input.kind);
  return *oracles<HeadOracle, Scores>().at(g.scores);
}
inline const WeightOracle& weight_oracle(const HeadGeometry& g) {
  static const WeightOracle softmax;
  return g.weights == HeadWeights::kSoftmax ? softmax : *oracles<WeightOracle, HeadWeights>().at(g.weights);
}
inline const QueryKeyOracle& query_key_oracle(const HeadGeometry& g) {
  static const QueryKeyOracle none;
  return g.query_key_norm == QueryKeyNorm::kNone
             ? none
             : *oracles<QueryKeyOracle, QueryKeyNorm>().at(g.query_key_norm);
}

/// Which layer of a stack the tests' attentions say they are.
inline constexpr int kLayer = 1;

}  // namespace mh::test
