// CircuitsReport against float64 with all matrices [d_model, d_model] and [V, V] written out, on a small random model of each family.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/heads/measures/heads_circuits.h"
#include "multihead/models/model.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/linear_algebra.h"
#include "tests/heads/measures/circuit_families.h"

namespace mh {
namespace {

using test::CircuitFamily;
using test::operator*;
using test::WholeMatrices;

double whole_norm(const DoubleMatrix& a) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) sum += a.data()[i] * a.data()[i];
  return std::sqrt(sum);
}

struct WholeHead {
  std::string attention;
  DoubleMatrix qk, ov;
};

std::vector<WholeHead> whole_heads(const CircuitFamily& family) {
  const WholeMatrices weights(*family.model);
  std::vector<WholeHead> found;
  for (const auto& [name, count, place] : family.model->attentions()) {
    const HeadGeometry& g = family.model->attention(name).geometry();
    const NormConfig& norm = family.norms.at(name.substr(0, name.find('.')));
    DoubleMatrix own = weights.identity();
    if (norm.placement == NormPlacement::kPre && weights.has(name + "_norm.gain"))
      own = weights.norm(name + "_norm.gain", norm.kind);
    DoubleMatrix of_keys = own;
    if (name.ends_with("cross_attention")) {
      of_keys = weights.has("encoder.final_norm.gain") ? weights.norm("encoder.final_norm.gain", norm.kind)
                                                       : weights.identity();
    }
    for (int h = 0; h < count; ++h) {
      DoubleMatrix q = weights.head(name + ".w_q", h, g.heads),
                   k = weights.head(name + ".w_k", h * g.key_heads / g.heads, g.key_heads);
      for (auto& [w, gain] : {std::pair{&q, name + ".query_norm"}, {&k, name + ".key_norm"}}) {
        for (int64_t i = 0; i < w->size() && weights.has(gain); ++i)
          w->data()[i] *= weights.at(gain)(0, i % w->cols());
      }
      const DoubleMatrix v = weights.head(name + ".w_v", h * g.value_heads / g.heads, g.value_heads);
      const DoubleMatrix& all = weights.at(name + ".w_o");
      DoubleMatrix o(g.d_value, all.cols());
      for (int64_t i = 0; i < o.size(); ++i) o.data()[i] = all.data()[h * o.size() + i];
      found.push_back({name, own * q * transposed((of_keys * k).view()), of_keys * v * o});
    }
  }
  return found;
}

void expect_circuit(const Circuit& found, const DoubleMatrix& whole, const std::string& name) {
  const std::vector<double> values = svd(whole.view()).values;
  double sum = 0, entropy = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = i < found.singular_values.size() ? found.singular_values[i] : 0;
    EXPECT_NEAR(values[i], expected, 1e-9) << name << i;
    sum += values[i];
  }
  for (const double value : values) entropy -= value > 1e-12 ? value / sum * std::log(value / sum) : 0;
  EXPECT_NEAR(found.effective_rank, std::exp(entropy), 1e-7) << name;
  EXPECT_NEAR(found.norm, whole_norm(whole), 1e-9) << name;
}

double whole_copying(const DoubleMatrix& whole) {
  std::complex<double> sum = 0;
  double sizes = 0;
  for (const auto& value : eigenvalues(whole.view())) {
    sum += value;
    sizes += std::abs(value);
  }
  return sum.real() / sizes;
}

/// Whether what an attention writes reaches this part of another one.
bool reaches(const std::string& from, const std::string& to, HeadPart part) {
  const auto stack = [](const std::string& name) { return name.substr(0, name.find('.')); };
  const auto layer = [](const std::string& name) { return std::stoi(name.substr(name.find('.') + 1)); };
  const bool crosses = to.ends_with("cross_attention");
  if (crosses && part != HeadPart::kQueries) return stack(from) == "encoder";
  if (stack(from) != stack(to)) return false;
  return layer(from) < layer(to) || (layer(from) == layer(to) && crosses && from.ends_with("self_attention"));
}

void expect_as_whole(const CircuitFamily& family) {
  const std::vector<WholeHead> whole = whole_heads(family);
  const CircuitsReport found = heads_circuits(*family.model);
  ASSERT_EQ(found.heads.size(), whole.size());
  for (size_t h = 0; h < whole.size(); ++h) {
    const HeadCircuits& head = found.heads[h];
    EXPECT_EQ(head.attention, whole[h].attention);
    expect_circuit(head.query_key, whole[h].qk, head.name());
    expect_circuit(head.value_output, whole[h].ov, head.name());
    std::optional<double> copying;
    for (const auto& [part, ends] : family.words) {
      if (head.attention.find(part) != std::string::npos)
        copying = whole_copying(ends.first * whole[h].ov * ends.second);
    }
    ASSERT_EQ(head.copying.has_value(), copying.has_value()) << head.name();
    EXPECT_NEAR(head.copying.value_or(0), copying.value_or(0), 1e-5) << head.name();
  }

  auto next = found.compositions.begin();
  for (size_t to = 0; to < whole.size(); ++to) {
    for (size_t from = 0; from < whole.size(); ++from) {
      for (const HeadPart part : kHeadParts) {
        if (!reaches(whole[from].attention, whole[to].attention, part)) continue;
        ASSERT_NE(next, found.compositions.end());
        ASSERT_TRUE(next->from == from && next->to == to && next->part == part)
            << found.heads[from].name() << " " << found.heads[to].name();
        const DoubleMatrix& reader = part == HeadPart::kValues ? whole[to].ov : whole[to].qk;
        const DoubleMatrix both =
            whole[from].ov * (part == HeadPart::kKeys ? transposed(reader.view()) : reader);
        EXPECT_NEAR(next->strength, whole_norm(both) / (whole_norm(whole[from].ov) * whole_norm(reader)),
                    1e-6)
            << found.heads[from].name() << " " << found.heads[to].name();
        ++next;
      }
    }
  }
  EXPECT_EQ(next, found.compositions.end());
}
TEST(HeadsCircuits, AreThoseOfWholeMatrices) {
  for (const NormPlacement placement : {NormPlacement::kPost, NormPlacement::kPre}) {
    expect_as_whole(test::family_translator(placement, true));
    expect_as_whole(test::family_translator(placement, false));
  }
  expect_as_whole(test::family_bert());
  expect_as_whole(test::family_bert(7));  // ELECTRA
  expect_as_whole(test::family_modern_bert());
  expect_as_whole(test::family_causal(test::gpt_config(), 2));
  expect_as_whole(test::family_llama());
}

}  // namespace
}  // namespace mh
