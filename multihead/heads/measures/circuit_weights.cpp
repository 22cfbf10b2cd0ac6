#include "multihead/heads/measures/circuit_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "multihead/base/enum_names.h"
#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/norm.h"
#include "multihead/nn/canonical_weights.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/layer_weights.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/query_key_scheme.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

std::vector<DoubleMatrix> matrices_of(const LayerWeights& layer, HeadPart part, int count) {
  std::vector<DoubleMatrix> matrices;
  for (HeadMatrix& head : heads_of(layer, part, count)) matrices.push_back(std::move(head.weight));
  return matrices;
}

/// out^T in [d, d], of two tables [V, d]: products in float32 of some rows at a time, their sum in double.
DoubleMatrix product_of_tables(const Weight& out, const Weight& in) {
  constexpr int64_t kRowsAtOnce = 512;
  const int64_t words = out.rows(), d = out.cols();
  Tensor left(kRowsAtOnce, d), right(kRowsAtOnce, d), part(d, d);
  DoubleMatrix sum(d, d);
  for (int64_t begin = 0; begin < words; begin += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, words - begin);
    parallel_for(rows, [&](int64_t i) {
      out.read_row(begin + i, left.view().row(i));
      in.read_row(begin + i, right.view().row(i));
    });
    multiply_transposed(left.view().rows_between(0, rows), right.view().rows_between(0, rows), part.view());
    for (int64_t i = 0; i < sum.size(); ++i) sum.data()[i] += part.data()[i];
  }
  return sum;
}

}  // namespace

CircuitModel::CircuitModel(const Model& model) : model_(model) {
  for (const StackConfig* stack : model.stack_configs()) norms_[stack->name] = stack->norm;
  if (const EmbeddingConfig embedding = model.embedding_config(); embedding.norm)
    embedding_norm_ = embedding.norm->kind;
  model.visit(ConstParameterVisitor(
      [&](const std::string& name, const Parameter& parameter) { parameters_[name] = &parameter; }));
}

CircuitModel::FoldedNorm CircuitModel::norm(const std::string& gain, NormKind kind) const {
  const auto found = parameters_.find(gain);
  if (found == parameters_.end()) return {};
  return {.gain = found->second->value.view(), .centred = kind == NormKind::kLayer};
}

CircuitModel::FoldedNorm CircuitModel::norm_before(const std::string& attention,
                                                   const AttentionPlace& place) const {
  const NormConfig& of_stack = norms_.find(place.stack())->second;
  if (!norms_input(of_stack.placement)) return {};
  return norm(attention + "_norm.gain", of_stack.kind);
}

CircuitModel::FoldedNorm CircuitModel::norm_at_end(std::string_view stack) const {
  return norm(fmt::format("{}.final_norm.gain", stack), norms_.find(stack)->second.kind);
}

void CircuitModel::FoldedNorm::multiply_left(DoubleMatrix& m) const {
  if (gain.empty()) return;
  std::vector<double> means(static_cast<size_t>(m.cols()));
  for (int64_t i = 0; i < m.rows(); ++i) {
    for (int64_t j = 0; j < m.cols(); ++j) {
      m(i, j) *= gain(0, i);
      means[static_cast<size_t>(j)] += m(i, j) / static_cast<double>(m.rows());
    }
  }
  if (!centred) return;
  for (int64_t i = 0; i < m.rows(); ++i) {
    for (int64_t j = 0; j < m.cols(); ++j) m(i, j) -= means[static_cast<size_t>(j)];
  }
}

void CircuitModel::FoldedNorm::multiply_right(DoubleMatrix& m) const {
  if (gain.empty()) return;
  for (int64_t i = 0; i < m.rows(); ++i) {
    double mean = 0;
    for (int64_t j = 0; j < m.cols() && centred; ++j) mean += m(i, j) / static_cast<double>(m.cols());
    for (int64_t j = 0; j < m.cols(); ++j) m(i, j) = (m(i, j) - mean) * gain(0, j);
  }
}

CircuitWeights CircuitModel::weights(const std::string& attention) const {
  const MultiHeadAttention& from = model_.attention(attention);
  const HeadGeometry& g = from.geometry();
  if (const char* why = weight_scheme_of(g).refusal(Change::kProjections)) {
    throw UsageError(
        fmt::format("{} has {} heads, of which none has a W_QK and a W_OV of its own ({}); circuits need "
                    "`weights` softmax",
                    attention, name_of(g.weights, kHeadWeightsNames), why));
  }
  const int d_model = model_.facts().d_model;
  LayerWeights layer = weights_of(from, d_model);
  // One matrix in place of W_Q W_K^T: d_model pairs of singular vectors always make it.
  if (const HeadScheme& scheme = scheme_of(g); !scheme.projects_keys())
    layer = scheme.to_canonical(layer, {.d_key = d_model});
  CircuitWeights found{.queries = matrices_of(layer, HeadPart::kQueries, g.heads),
                       .keys = matrices_of(layer, HeadPart::kKeys, layer.geometry.key_heads),
                       .values = matrices_of(layer, HeadPart::kValues, layer.geometry.value_heads),
                       .outputs = {}};
  for (int h = 0; h < g.heads; ++h) found.outputs.push_back(output_matrix(layer, h));

  const QueryKeyScheme& met = query_key_scheme_of(g);
  const AttentionPlace place = model_.place(attention);
  const bool crosses = place.kind == AttentionKind::kCross;
  const FoldedNorm own = norm_before(attention, place), of_keys = crosses ? norm_at_end("encoder") : own;
  const auto fold = [&](HeadPart part, std::vector<DoubleMatrix>& heads, const FoldedNorm& before) {
    for (size_t h = 0; h < heads.size(); ++h) {
      met.fold_gain(layer, part, static_cast<int>(h), heads[h]);
      before.multiply_left(heads[h]);
    }
  };
  fold(HeadPart::kQueries, found.queries, own);
  fold(HeadPart::kKeys, found.keys, of_keys);
  for (DoubleMatrix& w : found.values) of_keys.multiply_left(w);
  const FoldedNorm of_output = norm(attention + "_output_norm.gain", norms_.find(place.stack())->second.kind);
  for (DoubleMatrix& w : found.outputs) of_output.multiply_right(w);
  return found;
}

std::optional<DoubleMatrix> CircuitModel::words(AttentionKind kind) const {
  if (!model_.predicts()) return std::nullopt;
  // Nothing predicts the words of a source; those of two tables are different words.
  if (kind == AttentionKind::kEncoderSelf && model_.kind() == ModelKind::kTranslator) return std::nullopt;
  if (kind == AttentionKind::kCross && parameters_.contains("target_embedding")) return std::nullopt;

  const auto table = [&](std::initializer_list<const char*> names) -> const Weight& {
    for (const char* name : names) {
      if (const auto found = parameters_.find(name); found != parameters_.end()) return found->second->value;
    }
    throw InternalError("a model that predicts words has no table of them");
  };
  const std::string_view stack = AttentionPlace{.kind = kind}.stack();
  DoubleMatrix words =
      product_of_tables(table({"output", "embedding"}), table({"target_embedding", "embedding"}));
  if (const auto dense = parameters_.find("masked_words.w"); dense != parameters_.end()) {
    norm("masked_words.norm.gain", norms_.find(stack)->second.kind).multiply_left(words);
    words = product(in_double(dense->second->value.view()).view(), words.view());
  }
  norm_at_end(stack).multiply_left(words);
  norm("embedding.norm.gain", embedding_norm_).multiply_right(words);
  if (const auto projection = parameters_.find("embedding.projection.w"); projection != parameters_.end())
    words = product(words.view(), in_double(projection->second->value.view()).view());
  return words;
}

}  // namespace mh
