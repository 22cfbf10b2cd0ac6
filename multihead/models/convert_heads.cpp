#include "multihead/models/convert_heads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/models/shared_factors.h"
#include "multihead/nn/head_blocks.h"

namespace mh {
namespace {

Tensor side_by_side(const std::vector<DoubleMatrix>& parts) {
  int64_t cols = 0;
  for (const DoubleMatrix& part : parts) cols += part.cols();
  Tensor all(parts[0].rows(), cols);
  int64_t at = 0;
  for (const DoubleMatrix& part : parts) {
    for (int64_t i = 0; i < part.rows(); ++i) {
      for (int64_t j = 0; j < part.cols(); ++j) all(i, at + j) = static_cast<float>(part(i, j));
    }
    at += part.cols();
  }
  return all;
}

/// What becomes of the heads, from little to much.
enum class Change {
  kSelection,    // some of them, in some order
  kProjections,  // the same queries and keys (or others of that size) from other matrices
  kProducts,     // matrices that stand for products of queries' and keys'
};

/// Refuses what would be lost.
void require_kept(const LayerWeights& layer, Change change, const char* what) {
  const HeadGeometry& g = layer.geometry;
  const auto refuse = [&](const char* why) { throw UsageError(fmt::format("{}: {}", what, why)); };
  if (g.weights == HeadWeights::kTalking) refuse("talking heads mix each other's weights by their numbers");
  if (g.weights == HeadWeights::kDifferential && change != Change::kSelection)
    refuse("differential heads have two queries and two keys each");
  if (change != Change::kProducts) return;
  if (g.query_key_norm != QueryKeyNorm::kNone)
    refuse("with a query_key_norm queries and keys are normed before their product");
  if (layer.has("distance_keys")) refuse("Shaw's positions meet each query before its product with the keys");
}

void require_whole_rows(const LayerWeights& layer, Change change, const char* what) {
  require_kept(layer, change, what);
  const HeadGeometry& g = layer.geometry;
  if (g.input.kind == HeadInput::Kind::kWholeRow &&
      (g.scores == Scores::kQueryKey || g.scores == Scores::kTied))
    return;
  throw UsageError(fmt::format(
      "{} needs heads that read the whole row by queries and keys; convert to canonical first", what));
}

void require_own_keys(const LayerWeights& layer, const char* what) {
  const HeadGeometry& g = layer.geometry;
  if (g.key_heads == g.heads && g.value_heads == g.heads) return;
  throw UsageError(
      fmt::format("{} needs a head of keys and values for each of the {} heads; these have {} and {}", what,
                  g.heads, g.key_heads, g.value_heads));
}

/// Puts `count` heads of projection `letter`, each of its own query head.
void put_projection(LayerWeights& to, char letter, const std::vector<HeadMatrix>& heads) {
  std::vector<DoubleMatrix> weights, biases;
  for (const HeadMatrix& head : heads) {
    weights.push_back(head.weight);
    biases.push_back(head.bias);
  }
  to.values[std::string("w_") + letter] = side_by_side(weights);
  if (to.geometry.biases == Biases::kAll) to.values[std::string("b_") + letter] = side_by_side(biases);
}

/// The matrices of `count` heads of keys or values, one for each group of query heads.
std::vector<HeadMatrix> heads_of(const LayerWeights& layer, char letter, int count) {
  std::vector<HeadMatrix> heads;
  for (int i = 0; i < count; ++i)
    heads.push_back(head_matrix(layer, letter, i * layer.geometry.heads / count));
  return heads;
}

/// W^O and its bias; without one the identity.
void put_output(const LayerWeights& from, LayerWeights& to) {
  to.geometry.output = HeadOutput::kProjection;
  if (from.has("w_o")) {
    to.values["w_o"] = from.values.at("w_o");
    if (from.has("b_o")) to.values["b_o"] = from.values.at("b_o");
    return;
  }
  Tensor identity(from.d_model, from.d_model);
  for (int64_t i = 0; i < identity.rows(); ++i) identity(i, i) = 1;
  to.values["w_o"] = std::move(identity);
  if (to.geometry.biases == Biases::kAll) to.values["b_o"] = Tensor(1, from.d_model);
}

/// What a layer of this kind keeps of another: sizes, scale, biases, values and output.
LayerWeights begun(const LayerWeights& from, Scores scores) {
  LayerWeights to{.d_model = from.d_model, .geometry = from.geometry, .values = {}};
  to.geometry.input = {};
  to.geometry.scores = scores;
  to.geometry.shared_size = 0;
  to.geometry.initialisation = HeadGeometry().initialisation;  // it says nothing about numbers that are there
  put_projection(to, 'v', heads_of(from, 'v', from.geometry.value_heads));
  put_output(from, to);
  for (const char* name : {"score_factor", "distance_keys", "distance_bias"}) {
    if (from.has(name)) to.values[name] = from.values.at(name);
  }
  return to;
}

/// Row n of the bias below the weight: [d + 1, size].
DoubleMatrix with_bias(const DoubleMatrix& weight, const DoubleMatrix& bias) {
  DoubleMatrix both(weight.rows() + 1, weight.cols());
  for (int64_t i = 0; i < weight.rows(); ++i)
    std::copy_n(weight.view().row(i), weight.cols(), both.view().row(i));
  std::copy_n(bias.data(), bias.cols(), both.view().row(weight.rows()));
  return both;
}
HeadMatrix bias_apart(const DoubleMatrix& both) {
  HeadMatrix apart{DoubleMatrix(both.rows() - 1, both.cols()), DoubleMatrix(1, both.cols())};
  for (int64_t i = 0; i + 1 < both.rows(); ++i)
    std::copy_n(both.view().row(i), both.cols(), apart.weight.view().row(i));
  std::copy_n(both.view().row(both.rows() - 1), both.cols(), apart.bias.data());
  return apart;
}

/// Columns times the square roots of `values`, of which the rest are zero: [rows, size].
DoubleMatrix balanced(const DoubleMatrix& vectors, const std::vector<double>& values, int64_t rank,
                      int64_t size) {
  DoubleMatrix scaled(vectors.rows(), size);
  for (int64_t i = 0; i < vectors.rows(); ++i) {
    for (int64_t n = 0; n < std::min(rank, size); ++n)
      scaled(i, n) = vectors(i, n) * std::sqrt(values[static_cast<size_t>(n)]);
  }
  return scaled;
}

LayerWeights unmerged(const LayerWeights& from, const CanonicalOptions& options) {
  const int d_key = options.d_key > 0 ? options.d_key : from.geometry.d_key;
  LayerWeights to = begun(from, Scores::kQueryKey);
  to.geometry.d_key = d_key;
  std::vector<HeadMatrix> queries, keys;
  for (int h = 0; h < from.geometry.heads; ++h) {
    const int64_t begin = int64_t{h} * from.d_model, end = begin + from.d_model;
    const DoubleMatrix w = in_double(from.values.at("w_qk").view().columns_between(begin, end));
    const DoubleMatrix c = from.has("c_qk")
                               ? in_double(from.values.at("c_qk").view().columns_between(begin, end))
                               : DoubleMatrix(1, from.d_model);
    const Svd found = svd(with_bias(w, c).view());
    const int64_t rank = numeric_rank(found.values);
    if (rank > d_key && !options.nearest) {
      throw UsageError(
          fmt::format("the matrix of head {} has rank {}, more than d_key {} can say; give d_key {}, or "
                      "ask for the nearest",
                      h, rank, d_key, rank));
    }
    queries.push_back(bias_apart(balanced(found.left, found.values, rank, d_key)));
    keys.push_back({balanced(found.right, found.values, rank, d_key), DoubleMatrix(1, d_key)});
  }
  put_projection(to, 'q', queries);
  put_projection(to, 'k', keys);
  return to;
}

/// The `size` rows of each of these heads, below each other.
Tensor rows_of(const Tensor& from, const std::vector<int>& heads, int64_t size) {
  Tensor to(static_cast<int64_t>(heads.size()) * size, from.cols());
  for (size_t i = 0; i < heads.size(); ++i) {
    for (int64_t r = 0; r < size; ++r) {
      std::copy_n(from.view().row(heads[i] * size + r), from.cols(),
                  to.view().row(static_cast<int64_t>(i) * size + r));
    }
  }
  return to;
}

/// The named blocks of the old heads, in this order.
LayerWeights chosen(const LayerWeights& from, const std::vector<int>& heads) {
  LayerWeights to = from;
  const int maps = maps_per_head(from.geometry);
  to.geometry.heads = to.geometry.key_heads = to.geometry.value_heads = static_cast<int>(heads.size());
  for (const char letter : {'q', 'k', 'v'}) {
    const std::string weight = std::string("w_") + letter;
    if (!from.has(weight)) continue;  // tied keys
    std::vector<HeadMatrix> kept;
    for (const int h : heads) kept.push_back(head_matrix(from, letter, h));
    put_projection(to, letter, kept);
  }
  if (from.has("distance_bias"))
    to.values["distance_bias"] = rows_of(from.values.at("distance_bias"), heads, maps);
  if (!from.has("w_o")) return to;
  to.values["w_o"] = rows_of(from.values.at("w_o"), heads, from.geometry.d_value);
  return to;
}

double largest(const DoubleMatrix& a) {
  double found = 0;
  for (int64_t i = 0; i < a.size(); ++i) found = std::max(found, std::abs(a.data()[i]));
  return found;
}
bool near(const DoubleMatrix& a, const DoubleMatrix& b, double tolerance) {
  const double most = tolerance * std::max(largest(a), largest(b));
  for (int64_t i = 0; i < a.size(); ++i) {
    if (std::abs(a.data()[i] - b.data()[i]) > most) return false;
  }
  return true;
}

}  // namespace

LayerWeights to_canonical(const LayerWeights& layer, const CanonicalOptions& options) {
  const bool merged = layer.geometry.scores == Scores::kMerged;
  require_kept(layer, merged ? Change::kProducts : Change::kProjections, "a conversion to canonical");
  if (merged) return unmerged(layer, options);
  LayerWeights to = begun(layer, Scores::kQueryKey);
  if (layer.geometry.scores == Scores::kCollaborative) {
    to.geometry.d_key = layer.geometry.shared_size;
    to.geometry.key_heads = 1;
  }
  put_projection(to, 'q', heads_of(layer, 'q', to.geometry.heads));
  put_projection(to, 'k', heads_of(layer, 'k', to.geometry.key_heads));
  return to;
}

LayerWeights to_merged(const LayerWeights& layer) {
  if (layer.geometry.scores == Scores::kMerged) return layer;
  require_kept(layer, Change::kProducts, "a conversion to merged");
  LayerWeights to = begun(layer, Scores::kMerged);
  // Each head its own values: merged heads share but the rows themselves.
  to.geometry.key_heads = to.geometry.value_heads = layer.geometry.heads;
  put_projection(to, 'v', heads_of(layer, 'v', layer.geometry.heads));
  std::vector<DoubleMatrix> weights, biases;
  for (int h = 0; h < layer.geometry.heads; ++h) {
    const HeadMatrix q = head_matrix(layer, 'q', h), k = head_matrix(layer, 'k', h);
    const DoubleMatrix k_transposed = transposed(k.weight.view());
    weights.push_back(product(q.weight.view(), k_transposed.view()));
    biases.push_back(product(q.bias.view(), k_transposed.view()));
  }
  to.values["w_qk"] = side_by_side(weights);
  if (layer.geometry.biases == Biases::kAll) to.values["c_qk"] = side_by_side(biases);
  return to;
}

LayerWeights to_grouped(const LayerWeights& layer, int key_heads) {
  require_whole_rows(layer, Change::kProjections, "a conversion to grouped queries");
  const HeadGeometry& g = layer.geometry;
  if (key_heads < 1 || g.key_heads % key_heads != 0 || g.value_heads % key_heads != 0) {
    throw UsageError(
        fmt::format("key_heads is {}; expected a divisor of the {} heads of keys and {} of values, for "
                    "example 1",
                    key_heads, g.key_heads, g.value_heads));
  }
  LayerWeights to = begun(layer, Scores::kQueryKey);
  to.geometry.key_heads = to.geometry.value_heads = key_heads;
  put_projection(to, 'q', heads_of(layer, 'q', g.heads));
  for (const char letter : {'k', 'v'}) {
    const int before = letter == 'k' ? g.key_heads : g.value_heads, size = before / key_heads;
    const std::vector<HeadMatrix> all = heads_of(layer, letter, before);
    std::vector<HeadMatrix> means;
    for (int group = 0; group < key_heads; ++group) {
      HeadMatrix mean = all[static_cast<size_t>(group * size)];
      const auto add = [](DoubleMatrix& sum, const DoubleMatrix& part) {
        for (int64_t i = 0; i < sum.size(); ++i) sum.data()[i] += part.data()[i];
      };
      for (int i = 1; i < size; ++i) {
        add(mean.weight, all[static_cast<size_t>(group * size + i)].weight);
        add(mean.bias, all[static_cast<size_t>(group * size + i)].bias);
      }
      for (DoubleMatrix* part : {&mean.weight, &mean.bias}) {
        for (int64_t i = 0; i < part->size(); ++i) part->data()[i] /= size;
      }
      means.push_back(std::move(mean));
    }
    put_projection(to, letter, means);
  }
  return to;
}

LayerWeights permuted(const LayerWeights& layer, const std::vector<int>& order) {
  require_whole_rows(layer, Change::kSelection, "a permutation of heads");
  require_own_keys(layer, "a permutation of heads");
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool all = static_cast<int>(order.size()) == layer.geometry.heads;
  for (size_t i = 0; i < sorted.size(); ++i) all = all && sorted[i] == static_cast<int>(i);
  if (!all) {
    throw UsageError(fmt::format("the order {} is no permutation of heads 0 ... {}; name each once",
                                 fmt::join(order, ","), layer.geometry.heads - 1));
  }
  return chosen(layer, order);
}

LayerWeights without_heads(const LayerWeights& layer, const std::vector<int>& removed) {
  require_whole_rows(layer, Change::kSelection, "the removal of heads");
  require_own_keys(layer, "the removal of heads");
  for (const int h : removed) {
    if (h < 0 || h >= layer.geometry.heads)
      throw UsageError(
          fmt::format("there is no head {} to remove; there are 0 ... {}", h, layer.geometry.heads - 1));
  }
  std::vector<int> kept;
  for (int h = 0; h < layer.geometry.heads; ++h) {
    if (std::find(removed.begin(), removed.end(), h) == removed.end()) kept.push_back(h);
  }
  if (kept.empty()) throw UsageError("all heads of a layer are to be removed; leave at least one");
  return chosen(layer, kept);
}

LayerWeights equal_merged(const LayerWeights& layer, double tolerance) {
  require_whole_rows(layer, Change::kSelection, "the merging of equal heads");
  require_own_keys(layer, "the merging of equal heads");
  if (!layer.has("w_o"))
    throw UsageError("the merging of equal heads needs a W^O to add up; convert to canonical first");
  const auto equal = [&](int a, int b) {
    for (const char letter : {'q', 'k', 'v'}) {
      const HeadMatrix of_a = head_matrix(layer, letter, a), of_b = head_matrix(layer, letter, b);
      if (!near(with_bias(of_a.weight, of_a.bias), with_bias(of_b.weight, of_b.bias), tolerance))
        return false;
    }
    const int maps = maps_per_head(layer.geometry);
    return !layer.has("distance_bias") ||
           near(in_double(rows_of(layer.values.at("distance_bias"), {a}, maps).view()),
                in_double(rows_of(layer.values.at("distance_bias"), {b}, maps).view()), tolerance);
  };
  std::vector<int> kept, twin;  // twin[h]: where the sum of its W_h^O goes
  for (int h = 0; h < layer.geometry.heads; ++h) {
    const auto found = std::find_if(kept.begin(), kept.end(), [&](int other) { return equal(other, h); });
    twin.push_back(static_cast<int>(found - kept.begin()));
    if (found == kept.end()) kept.push_back(h);
  }
  if (static_cast<int>(kept.size()) == layer.geometry.heads) return layer;
  LayerWeights to = chosen(layer, kept);
  const int64_t size = layer.geometry.d_value;
  for (int h = 0; h < layer.geometry.heads; ++h) {
    const int into = twin[static_cast<size_t>(h)];
    if (kept[static_cast<size_t>(into)] == h) continue;
    for (int64_t r = 0; r < size; ++r) {
      for (int64_t c = 0; c < layer.d_model; ++c)
        to.values["w_o"](into * size + r, c) += layer.values.at("w_o")(h * size + r, c);
    }
  }
  return to;
}

LayerWeights to_collaborative(const LayerWeights& layer, int shared_size) {
  require_whole_rows(layer, Change::kProducts, "a conversion to collaborative");
  const HeadGeometry& g = layer.geometry;
  if (shared_size < 1) throw UsageError(fmt::format("shared_size is {}; expected at least 1", shared_size));
  LayerWeights to = begun(layer, Scores::kCollaborative);
  to.geometry.shared_size = shared_size;
  to.geometry.key_heads = to.geometry.value_heads = g.heads;
  put_projection(to, 'v', heads_of(layer, 'v', g.heads));
  std::vector<DoubleMatrix> lefts, rights;
  for (int h = 0; h < g.heads; ++h) {
    const HeadMatrix q = head_matrix(layer, 'q', h);
    lefts.push_back(with_bias(q.weight, q.bias));  // the bias as a row more: b_i^Q W_i^K^T is to be kept, too
    rights.push_back(head_matrix(layer, 'k', h).weight);
  }
  constexpr int kRounds = 30;
  const SharedFactors factors = shared_factors(std::move(lefts), std::move(rights), shared_size,
                                               shared_size < g.heads * g.d_key ? kRounds : 0);
  put_projection(to, 'q', {bias_apart(factors.left)});
  put_projection(to, 'k', {{factors.right, DoubleMatrix(1, shared_size)}});
  to.values["mixing"] = in_float(factors.mixing.view());
  return to;
}

}  // namespace mh
