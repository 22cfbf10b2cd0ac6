// From rows to the queries, keys and values of all heads: one class a geometry (geometries/), behind one
// interface.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/autograd/head_affine.h"
#include "multihead/base/random.h"
#include "multihead/nn/context.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

enum class HeadPart { kQueries, kKeys, kValues };
inline constexpr HeadPart kHeadParts[] = {HeadPart::kQueries, HeadPart::kKeys, HeadPart::kValues};
/// 'q', 'k' or 'v', as names of parameters end; "w_q", "b_q".
constexpr char letter_of(HeadPart part) {
  return "qkv"[static_cast<int>(part)];
}
inline std::string weight_name(HeadPart part) {
  return std::string("w_") + letter_of(part);
}
inline std::string bias_name(HeadPart part) {
  return std::string("b_") + letter_of(part);
}

/// What the kernel is told (AttentionInputs). Query head i reads key head i * key_heads / heads, and so for
/// values.
struct HeadShape {
  int heads = 1, key_heads = 1, value_heads = 1;
  int d_key = 0, d_value = 0;
  float scale = 1;

  int64_t heads_of(HeadPart part) const {
    return part == HeadPart::kQueries ? heads : part == HeadPart::kKeys ? key_heads : value_heads;
  }
  int64_t size_of(HeadPart part) const { return part == HeadPart::kValues ? d_value : d_key; }
};

class Heads {
 public:
  Heads() = default;
  Heads(const Heads&) = delete;
  Heads& operator=(const Heads&) = delete;
  virtual ~Heads() = default;

  virtual HeadShape shape() const = 0;

  struct Projected {
    Var q;  // [N, heads * d_key]
    Var k;  // [N, key_heads * d_key]
    Var v;  // [N, value_heads * d_value]
  };
  /// Self-attention: of the same rows x [N, d_model].
  virtual Projected project(Context& context, Var x) const = 0;
  /// For queries that meet keys from elsewhere.
  virtual Var queries(Context& context, Var x) const = 0;
  struct KeysValues {
    Var k, v;
  };
  virtual KeysValues keys_and_values(Context& context, Var memory) const = 0;

  virtual void initialise(Random& random) = 0;
  /// In a fixed order, names "NAME.w_q", ...
  virtual void visit(const std::string& name, const ParameterVisitor& visitor) = 0;
};

/// geometry: completed(). A differential head is two of the kernel's.
std::unique_ptr<Heads> make_heads(const HeadGeometry& geometry, int d_model);

/// What an Affine gets: these, or none of them.
inline std::vector<const Parameter*> biases_or_none(Biases biases,
                                                    std::initializer_list<const Parameter*> all) {
  return biases == Biases::kAll ? std::vector<const Parameter*>(all) : std::vector<const Parameter*>();
}

/// Where heads start equal: makes every block the first one, plus the noise of kEqualWithNoise.
void make_equal(const HeadGeometry& geometry, const std::vector<MatrixView>& blocks, Random& random);
/// Starts a matrix of heads side by side, [rows, heads * width], as the geometry says. `packed_columns`: of
/// all matrices that one in_proj would hold, for kXavierPacked.
void initialise_heads(const HeadGeometry& geometry, Parameter& weight, int heads, int64_t packed_columns,
                      Random& random);
/// Starts W^O [heads * d_value, columns].
void initialise_output(const HeadGeometry& geometry, Parameter& weight, Random& random);

}  // namespace mh
