#include "multihead/heads/conversion/convert_heads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "multihead/base/error.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/query_key_scheme.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

/// Refuses what would be lost.
void require_kept(const LayerWeights& layer, Change change, const char* what) {
  const auto refuse = [&](const char* why) { throw UsageError(fmt::format("{}: {}", what, why)); };
  if (const char* why = weight_scheme_of(layer.geometry).refusal(change)) refuse(why);
  if (const char* why = query_key_scheme_of(layer.geometry).refusal(change)) refuse(why);
  if (change == Change::kProducts && layer.has("distance_keys"))
    refuse("Shaw's positions meet each query before its product with the keys");
  if (change == Change::kProducts && (layer.has("distance_vectors") || layer.has(kDistanceProjections[0]) ||
                                      layer.has(kDistanceProjections[2])))
    refuse("disentangled positions meet each query and key before their product");
}

void require_whole_rows(const LayerWeights& layer, Change change, const char* what) {
  require_kept(layer, change, what);
  if (scheme_of(layer.geometry).heads_lie_side_by_side()) return;
  throw UsageError(fmt::format(
      "{} needs heads that read the whole row by queries and keys; convert to canonical first", what));
}

void require_own_keys(const LayerWeights& layer, const char* what) {
  const HeadGeometry& g = layer.geometry;
  if (has_own_keys(g)) return;
  throw UsageError(
      fmt::format("{} needs a head of keys and values for each of the {} heads; these have {} and {}", what,
                  g.heads, g.key_heads, g.value_heads));
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

/// The heads of keys and values that these heads of queries have when each kept one belongs to equally many neighbours.
/// Throws UsageError when they do not.
std::vector<int> shared_keys_of(const LayerWeights& layer, const std::vector<int>& heads, const char* what) {
  const HeadGeometry& g = layer.geometry;
  if (g.key_heads != g.value_heads) require_own_keys(layer, what);
  const int size = g.heads / g.key_heads;
  std::vector<int> keys, counts;
  for (const int h : heads) {
    if (keys.empty() || keys.back() != h / size) {
      keys.push_back(h / size);
      counts.push_back(0);
    }
    ++counts.back();
  }
  std::vector<int> sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  const bool even = std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end() &&
                    std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (even) return keys;
  throw UsageError(
      fmt::format("{}: heads 0 ... {} share keys and values, and so on; keep as many heads of each such "
                  "group, side by side, or none",
                  what, size - 1));
}

/// The `size` columns of each of these heads, side by side.
Tensor columns_of(const Tensor& from, const std::vector<int>& heads, int64_t size) {
  Tensor to(from.rows(), static_cast<int64_t>(heads.size()) * size);
  for (size_t i = 0; i < heads.size(); ++i) {
    for (int64_t r = 0; r < from.rows(); ++r)
      std::copy_n(from.view().row(r) + heads[i] * size, size,
                  to.view().row(r) + static_cast<int64_t>(i) * size);
  }
  return to;
}

/// The named blocks of the old heads, in this order.
LayerWeights chosen(const LayerWeights& from, const std::vector<int>& heads, const char* what) {
  LayerWeights to = from;
  const int maps = softmaxes_per_head(from.geometry);
  const std::vector<int> keys = shared_keys_of(from, heads, what);
  to.geometry.heads = static_cast<int>(heads.size());
  to.geometry.key_heads = to.geometry.value_heads = static_cast<int>(keys.size());
  for (const HeadPart part : kHeadParts) {
    if (!from.has(weight_name(part))) continue;  // tied keys
    const bool queries = part == HeadPart::kQueries;
    const std::vector<HeadMatrix> all =
        heads_of(from, part, queries ? from.geometry.heads : from.geometry.key_heads);
    std::vector<HeadMatrix> kept;
    for (const int h : queries ? heads : keys) kept.push_back(all[static_cast<size_t>(h)]);
    put_projection(to, part, kept);
  }
  if (from.geometry.query_key_norm == QueryKeyNorm::kRmsRow) {  // a gain for each number of each head
    to.values["query_norm"] = columns_of(from.values.at("query_norm"), heads, maps * from.geometry.d_key);
    to.values["key_norm"] = columns_of(from.values.at("key_norm"), keys, maps * from.geometry.d_key);
  }
  if (from.has("distance_bias"))
    to.values["distance_bias"] = rows_of(from.values.at("distance_bias"), heads, maps);
  for (const char* name : kDistanceProjections) {
    if (from.has(name)) to.values[name] = columns_of(from.values.at(name), heads, from.geometry.d_key);
  }
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
  const HeadScheme& scheme = scheme_of(layer.geometry);
  require_kept(layer, scheme.change_to_canonical(), "a conversion to canonical");
  return scheme.to_canonical(layer, options);
}

LayerWeights to_merged(const LayerWeights& layer) {
  if (layer.geometry.scores == Scores::kMerged) return layer;
  require_kept(layer, Change::kProducts, "a conversion to merged");
  return head_scheme<Scores::kMerged>().from_heads(layer, {.scores = Scores::kMerged});
}

LayerWeights to_collaborative(const LayerWeights& layer, int shared_size) {
  require_whole_rows(layer, Change::kProducts, "a conversion to collaborative");
  return head_scheme<Scores::kCollaborative>().from_heads(
      layer, {.scores = Scores::kCollaborative, .shared_size = shared_size});
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
  LayerWeights to = with_outputs_of(layer, Scores::kQueryKey);
  to.geometry.key_heads = to.geometry.value_heads = key_heads;
  put_projection(to, HeadPart::kQueries, heads_of(layer, HeadPart::kQueries, g.heads));
  for (const HeadPart part : {HeadPart::kKeys, HeadPart::kValues}) {
    const int before = part == HeadPart::kKeys ? g.key_heads : g.value_heads, size = before / key_heads;
    const std::vector<HeadMatrix> all = heads_of(layer, part, before);
    std::vector<HeadMatrix> means;
    for (int group = 0; group < key_heads; ++group) {
      HeadMatrix mean = all[static_cast<size_t>(group * size)];
      const auto add = [](DoubleMatrix& sum, const DoubleMatrix& more) {
        for (int64_t i = 0; i < sum.size(); ++i) sum.data()[i] += more.data()[i];
      };
      for (int i = 1; i < size; ++i) {
        add(mean.weight, all[static_cast<size_t>(group * size + i)].weight);
        add(mean.bias, all[static_cast<size_t>(group * size + i)].bias);
      }
      for (DoubleMatrix* sum : {&mean.weight, &mean.bias}) {
        for (int64_t i = 0; i < sum->size(); ++i) sum->data()[i] /= size;
      }
      means.push_back(std::move(mean));
    }
    put_projection(to, part, means);
  }
  return to;
}

LayerWeights permuted(const LayerWeights& layer, const std::vector<int>& order) {
  require_whole_rows(layer, Change::kOrder, "a permutation of heads");
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool all = static_cast<int>(order.size()) == layer.geometry.heads;
  for (size_t i = 0; i < sorted.size(); ++i) all = all && sorted[i] == static_cast<int>(i);
  if (!all) {
    throw UsageError(fmt::format("the order {} is no permutation of heads 0 ... {}; name each once",
                                 fmt::join(order, ","), layer.geometry.heads - 1));
  }
  return chosen(layer, order, "a permutation of heads");
}

LayerWeights without_heads(const LayerWeights& layer, const std::vector<int>& removed) {
  require_whole_rows(layer, Change::kSelection, "the removal of heads");
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
  return chosen(layer, kept, "the removal of heads");
}

LayerWeights equal_merged(const LayerWeights& layer, double tolerance) {
  require_whole_rows(layer, Change::kSelection, "the merging of equal heads");
  require_own_keys(layer, "the merging of equal heads");
  if (!layer.has("w_o"))
    throw UsageError("the merging of equal heads needs a W^O to add up; convert to canonical first");
  const auto equal = [&](int a, int b) {
    for (const HeadPart part : kHeadParts) {
      if (!near(with_bias(head_matrix(layer, part, a)), with_bias(head_matrix(layer, part, b)), tolerance))
        return false;
    }
    for (const char* name : kDistanceProjections) {
      const auto of = [&](int head) {
        return in_double(columns_of(layer.values.at(name), {head}, layer.geometry.d_key).view());
      };
      if (layer.has(name) && !near(of(a), of(b), tolerance)) return false;
    }
    const int maps = softmaxes_per_head(layer.geometry);
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
  LayerWeights to = chosen(layer, kept, "the merging of equal heads");
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

}  // namespace mh
