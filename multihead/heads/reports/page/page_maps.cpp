#include "multihead/heads/reports/page/page_maps.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/heads/measures/circuit_weights.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/soft_cap.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

std::vector<float> numbers_of(ConstMatrixView rows, int64_t columns) {
  std::vector<float> numbers;
  numbers.reserve(static_cast<size_t>(rows.rows * columns));
  for (int64_t i = 0; i < rows.rows; ++i) numbers.insert(numbers.end(), rows.row(i), rows.row(i) + columns);
  return numbers;
}

/// [rows, heads * size] -> [heads, rows, size].
std::vector<float> by_heads(ConstMatrixView rows, int64_t heads) {
  const int64_t size = rows.cols / heads;
  std::vector<float> numbers;
  numbers.reserve(static_cast<size_t>(rows.size()));
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < rows.rows; ++i)
      numbers.insert(numbers.end(), rows.row(i) + h * size, rows.row(i) + (h + 1) * size);
  }
  return numbers;
}

/// What a page reads again.
void round_to_halves(std::vector<float>& numbers) {
  for (float& number : numbers) number = from_float16(to_float16(number));
}

/// scale Q K^T, softly capped where there is a cap, [queries, keys].
std::vector<float> scaled_products(ConstMatrixView q, ConstMatrixView k, float scale,
                                   std::optional<float> cap) {
  PackedMatrix keys;
  keys.pack_transposed(k);
  std::vector<float> scores(static_cast<size_t>(q.rows * k.rows));
  multiply(q, keys, {scores.data(), q.rows, k.rows});
  for (float& score : scores) score *= scale;
  const MatrixView all(scores.data(), q.rows, k.rows);
  if (cap) soft_cap(*cap, all, all);
  return scores;
}

/// What is added to the products by the distance j - i, [queries + keys - 1]. Empty: no more than rounding, or no function of the
/// distance, which the weights then show.
std::vector<float> bias_by_distance(std::span<const float> scores, std::span<const float> products,
                                    int64_t queries, int64_t keys) {
  constexpr float kRounding = 0.05f;
  std::vector<float> found(static_cast<size_t>(queries + keys - 1));
  float largest = 0;
  for (int64_t i = queries - 1; i >= 0; --i) {
    for (int64_t j = 0; j < keys; ++j) {
      const auto at = static_cast<size_t>(i * keys + j);
      found[static_cast<size_t>(j - i + queries - 1)] = scores[at] - products[at];
      largest = std::max(largest, std::abs(scores[at] - products[at]));
    }
  }
  return largest > kRounding ? found : std::vector<float>();
}

/// How many keys to the left a query sees, itself too, 0: all; nothing where the keys are not all, or the earlier ones of a window.
std::optional<int64_t> window_of(std::span<const Mask::Range> visible, int64_t keys, bool causal) {
  const Mask::Range last = visible.back();
  const int64_t window = last.begin > 0 ? last.end - last.begin : 0;
  for (size_t i = 0; i < visible.size(); ++i) {
    const int64_t end = causal ? std::min(keys, static_cast<int64_t>(i) + 1) : keys,
                  begin = window > 0 ? std::max<int64_t>(0, end - window) : 0;
    if (visible[i].begin != begin || visible[i].end != end) return std::nullopt;
  }
  return window;
}

/// The largest |softmax(scores) - weights| of a query.
float largest_error(std::span<const float> scores, std::span<const float> weights, Mask::Range seen) {
  float highest = -INFINITY, sum = 0, error = 0;
  for (int64_t j = seen.begin; j < seen.end; ++j) highest = std::max(highest, scores[static_cast<size_t>(j)]);
  for (int64_t j = seen.begin; j < seen.end; ++j) sum += std::exp(scores[static_cast<size_t>(j)] - highest);
  for (size_t j = 0; j < weights.size(); ++j) {
    const bool sees = std::cmp_greater_equal(j, seen.begin) && std::cmp_less(j, seen.end);
    error = std::max(error, std::abs((sees ? std::exp(scores[j] - highest) / sum : 0) - weights[j]));
  }
  return error;
}

}  // namespace

bool PageMapCollector::wants(const Site& site) const {
  switch (site.part) {
    case SitePart::kQueries:
    case SitePart::kKeys:
    case SitePart::kScores:
      return coding_ != PageCoding::kRoots;
    case SitePart::kValues:
    case SitePart::kWeights:
    case SitePart::kHeads:
      return true;
    default:
      return false;
  }
}

Var PageMapCollector::at(Tape&, const Site& site, const SiteValue& at) {
  const ConstMatrixView value = at.value.value();
  const bool map = site.part == SitePart::kScores || site.part == SitePart::kWeights;
  if (site.part == SitePart::kQueries) seen_.queries = value;
  if (site.part == SitePart::kKeys) seen_.keys = value;
  if (site.part == SitePart::kValues) seen_.values = value;
  if (map) {
    seen_.key_count = at.keys.empty() ? 0 : at.keys.front();
    (site.part == SitePart::kScores ? seen_.scores : seen_.weights)
        .push_back(numbers_of(value, seen_.key_count));
    seen_.visible.clear();
    for (int64_t i = 0; i < value.rows; ++i)
      seen_.visible.push_back(at.mask.visible(i, value.rows, seen_.key_count));
  }
  if (site.part == SitePart::kHeads) finish(site.owner);
  return at.value;
}

void PageMapCollector::finish(std::string_view name) {
  PageMaps maps{.queries = std::ssize(seen_.visible), .keys = seen_.key_count};
  if (coding_ != PageCoding::kRoots) maps.products = products(name, seen_);
  if (coding_ != PageCoding::kProducts || !maps.products) keep_weights(seen_, maps);
  maps.value_lengths = value_lengths(name, seen_);
  maps_.insert_or_assign(std::string(name), maps);
  seen_ = {};
}

void PageMapCollector::keep_weights(const Attention& seen, PageMaps& maps) {
  constexpr float kRounding = 1e-4f;
  std::vector<float> all;
  for (const std::vector<float>& weights : seen.weights)
    all.insert(all.end(), weights.begin(), weights.end());
  const auto is_share = [](float a) { return a >= -kRounding && a <= 1 + kRounding; };
  if (!std::all_of(all.begin(), all.end(), is_share)) {  // differential and talking heads
    maps.halves = numbers_.add_halves(all);
    return;
  }
  std::vector<uint8_t> bytes;
  for (const float a : all)
    bytes.push_back(static_cast<uint8_t>(std::lround(255 * std::sqrt(std::clamp(a, 0.0f, 1.0f)))));
  maps.roots = numbers_.add(std::span<const uint8_t>(bytes));
}

std::optional<PageMaps::Products> PageMapCollector::products(std::string_view name, const Attention& seen) {
  const MultiHeadAttention& attention = model_.attention(name);
  const int64_t heads = attention.heads(), d_key = attention.geometry().d_key, keys = seen.key_count,
                queries = std::ssize(seen.visible);
  const bool one_softmax_each = std::ssize(seen.scores) == heads && seen.queries.cols == heads * d_key &&
                                seen.keys.cols % d_key == 0 && seen.keys.rows == keys;
  const bool causal = model_.place(name).kind == AttentionKind::kDecoderSelf;
  const auto window = window_of(seen.visible, keys, causal);
  if (!one_softmax_each || !window) return std::nullopt;

  const int64_t key_heads = seen.keys.cols / d_key;
  std::vector<float> q = by_heads(seen.queries, heads), k = by_heads(seen.keys, key_heads), biases;
  round_to_halves(q);
  round_to_halves(k);
  bool biased = false;
  for (int64_t h = 0; h < heads; ++h) {
    std::vector<float> scores =
        scaled_products({q.data() + h * queries * d_key, queries, d_key},
                        {k.data() + h * key_heads / heads * keys * d_key, keys, d_key}, attention.scale(),
                        attention.geometry().soft_cap);
    const std::vector<float> bias =
        bias_by_distance(seen.scores[static_cast<size_t>(h)], scores, queries, keys);
    for (int64_t i = 0; i < queries; ++i) {
      const auto row = static_cast<size_t>(i * keys), size = static_cast<size_t>(keys);
      for (size_t j = 0; j < size && !bias.empty(); ++j)
        scores[row + j] += bias[j + static_cast<size_t>(queries - 1 - i)];
      if (largest_error(std::span(scores).subspan(row, size),
                        std::span(seen.weights[static_cast<size_t>(h)]).subspan(row, size),
                        seen.visible[static_cast<size_t>(i)]) > kLargestPageError)
        return std::nullopt;
    }
    biased = biased || !bias.empty();
    biases.resize(static_cast<size_t>(h * (queries + keys - 1)));
    biases.insert(biases.end(), bias.begin(), bias.end());
  }
  biases.resize(static_cast<size_t>(heads * (queries + keys - 1)));
  PageMaps::Products kept{.q = numbers_.add_halves(q),
                          .k = numbers_.add_halves(k),
                          .scale = attention.scale(),
                          .soft_cap = attention.geometry().soft_cap,
                          .window = *window};
  if (biased) kept.bias = numbers_.add(std::span<const float>(biases));
  return kept;
}

const PageMapCollector::Outputs& PageMapCollector::outputs(std::string_view name) {
  const auto known = outputs_.find(name);
  if (known != outputs_.end()) return known->second;
  Outputs found;
  try {
    const CircuitWeights weights = CircuitModel(model_).weights(std::string(name));
    found.value_heads = std::ssize(weights.values);
    for (const DoubleMatrix& out : weights.outputs)
      found.squares.push_back(product(out.view(), transposed(out.view()).view()));
  } catch (const UsageError&) {  // heads without matrices of their own
  }
  return outputs_.emplace(name, std::move(found)).first->second;
}

std::optional<PageNumbers::Block> PageMapCollector::value_lengths(std::string_view name,
                                                                  const Attention& seen) {
  const Outputs& of = outputs(name);
  const auto heads = std::ssize(of.squares);
  if (heads == 0 || seen.values.cols != of.value_heads * of.squares.front().rows()) return std::nullopt;
  const int64_t d_value = of.squares.front().rows();
  std::vector<float> lengths;
  for (int64_t h = 0; h < heads; ++h) {
    const DoubleMatrix& square = of.squares[static_cast<size_t>(h)];
    for (int64_t j = 0; j < seen.values.rows; ++j) {
      const float* v = seen.values.row(j) + h * of.value_heads / heads * d_value;
      double squares = 0;
      for (int64_t a = 0; a < d_value; ++a) {
        for (int64_t b = 0; b < d_value; ++b)
          squares += static_cast<double>(v[a]) * square(a, b) * static_cast<double>(v[b]);
      }
      lengths.push_back(static_cast<float>(std::sqrt(std::max(squares, 0.0))));
    }
  }
  return numbers_.add(std::span<const float>(lengths));
}

}  // namespace mh
