// Test suites that run for every geometry (geometry_test.cpp, ledger_test.cpp). Its own file gives the
// cases:
//
//   INSTANTIATE_TEST_SUITE_P(Merged, Geometry, testing::ValuesIn(cases), test::name_of_case);
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/nn/initialise.h"
#include "tests/nn/geometries/layer_in_double.h"

namespace mh::test {

struct Case {
  std::string name;
  HeadGeometry geometry;
  int d_model;
  Order order = {};
  int d_out = 0;
};

/// All geometries that have a name, small; each geometry's own file has more.
inline std::vector<Case> presets() {
  std::vector<Case> all;
  for (const GeometryName& named : geometry_names())
    all.push_back({std::string(named.name), geometry_preset(named.name, 2, 6), 6, {}});
  return all;
}

inline std::string name_of_case(const testing::TestParamInfo<Case>& of) {
  std::string name = of.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

/// The one thing that makes a description impossible.
inline void expect_problem(const HeadGeometry& geometry, int d_model, const char* text) {
  const auto found = problems_of(geometry, d_model);
  ASSERT_EQ(found.size(), 1u) << testing::PrintToString(found);
  EXPECT_EQ(found[0], text);
}

/// Of the same shape.
inline double distance(const D& a, const D& b) {
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a.data()[i] - b.data()[i]));
  return most;
}

/// Every geometry against its formula in double: outputs, and the gradient of every number that is learned.
class Geometry : public testing::TestWithParam<Case> {
 protected:
  Geometry() : layer("layer", config(GetParam().order), streams), crossing("crossing", config({}), streams) {
    Random random(7);
    for (MultiHeadAttention* one : {&layer, &crossing}) {
      one->initialise(random);
      one->visit("", [&](const std::string& name, Parameter& p) {
        // They start at 0 or 1, which would hide them.
        if (name[1] == 'b' || name[1] == 'c' || name.starts_with(".mixing_of") || name == ".head_norm" ||
            name == ".query_norm" || name == ".key_norm" || name.starts_with(".distance_norm") ||
            name.starts_with(".distance_b_"))
          fill_normal(p, random, 0.5);
      });
    }
  }
  static MultiHeadAttentionConfig config(const Order& order) {
    return {.d_model = GetParam().d_model,
            .d_out = GetParam().d_out,
            .geometry = GetParam().geometry,
            .positions = order.positions,
            .disentangled = order.disentangled,
            .mask = order.direction == AttentionDirection::kCausal ? StackMask::causal() : StackMask::none(),
            .layer = kLayer};
  }
  static D random_rows(int64_t rows, uint64_t seed) {
    Random random(seed);
    D x(rows, GetParam().d_model);
    for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(random.normal());
    return x;
  }
  static Tensor in_float(const D& from) {
    Tensor to(from.rows(), from.cols());
    for (int64_t i = 0; i < from.size(); ++i) to.data()[i] = static_cast<float>(from.data()[i]);
    return to;
  }
  static Var output_of(Context& context, MultiHeadAttention& layer, Var heads) {
    return layer.output() != nullptr ? affine(context.tape, heads, *layer.output()) : heads;
  }

  DropoutStreams streams;
  MultiHeadAttention layer;     // attends to itself
  MultiHeadAttention crossing;  // to a memory, where there are no positions
};

/// The ledger against counts: the layer's own parameters and memory, and the operations of a reference that
/// runs the formula on numbers that count.
class LedgerOf : public testing::TestWithParam<Case> {
 protected:
  const Case& c = GetParam();
  HeadGeometry completed_geometry = completed(c.geometry, c.d_model, "case");
};

}  // namespace mh::test
