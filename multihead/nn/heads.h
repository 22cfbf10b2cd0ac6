// Heads: projects rows [N, d_model] to the queries, keys and values of all heads. Each geometry is one
// class behind this interface (geometries/).
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
/// 'q', 'k' or 'v': the letter in names of parameters, "w_q", "b_q".
constexpr char letter_of(HeadPart part) {
  return "qkv"[static_cast<int>(part)];
}
inline std::string weight_name(HeadPart part) {
  return std::string("w_") + letter_of(part);
}
inline std::string bias_name(HeadPart part) {
  return std::string("b_") + letter_of(part);
}

/// The sizes that the kernel gets (AttentionInputs). Query head i reads key head i * key_heads / heads and
/// value head i * value_heads / heads.
struct HeadShape {
  int heads = 1, key_heads = 1, value_heads = 1;
  int d_key = 0, d_value = 0;
  float scale = 1;

  int64_t heads_of(HeadPart part) const {
    return part == HeadPart::kQueries ? heads : part == HeadPart::kKeys ? key_heads : value_heads;
  }
  int64_t size_of(HeadPart part) const { return part == HeadPart::kValues ? d_value : d_key; }
};

/// Queries, keys and values of the same rows.
struct ProjectedHeads {
  Var q;  // [N, heads * d_key]
  Var k;  // [N, key_heads * d_key]
  Var v;  // [N, value_heads * d_value]
};

class Heads {
 public:
  Heads() = default;
  Heads(const Heads&) = delete;
  Heads& operator=(const Heads&) = delete;
  virtual ~Heads() = default;

  virtual HeadShape shape() const = 0;

  /// For self-attention: x [N, d_model].
  virtual ProjectedHeads project(Context& context, Var x) const = 0;
  /// The queries alone, for cross-attention and cached decoding: x [N, d_model].
  virtual Var queries(Context& context, Var x) const = 0;
  struct KeysValues {
    Var k, v;
  };
  virtual KeysValues keys_and_values(Context& context, Var memory) const = 0;
  /// The keys alone, of what has no values: vectors of distances.
  virtual Var keys(Context& context, Var x) const { return keys_and_values(context, x).k; }
  /// What is done to queries or keys after their projection, before positions turn them: a norm.
  virtual Var normed(Context& /*context*/, HeadPart /*part*/, Var rows) const { return rows; }

  virtual void initialise(Random& random) = 0;
  /// Calls the visitor with every parameter in a fixed order, "NAME.w_q", ...
  virtual void visit(const std::string& name, const ParameterVisitor& visitor) = 0;
};

/// Makes the heads that `geometry` describes; it must be completed(). A differential head is two heads of
/// the kernel.
std::unique_ptr<Heads> make_heads(const HeadGeometry& geometry, int d_model, float norm_epsilon);

/// Returns the biases for an Affine: all of them, or none.
inline std::vector<const Parameter*> biases_or_none(Biases biases,
                                                    std::initializer_list<const Parameter*> all) {
  return has_bias_of_heads(biases) ? std::vector<const Parameter*>(all) : std::vector<const Parameter*>();
}

/// When heads start equal, copies the first block into every other one, with the noise of kEqualWithNoise.
void make_equal(const HeadGeometry& geometry, const std::vector<MatrixView>& blocks, Random& random);
/// Initialises a matrix of heads side by side, [rows, heads * width], as the geometry says.
/// `packed_columns`: the columns of [W^Q | W^K | W^V] together, for kXavierPacked.
void initialise_heads(const HeadGeometry& geometry, Parameter& weight, int heads, int64_t packed_columns,
                      Random& random);
/// Initialises W^O [heads * d_value, columns].
void initialise_output(const HeadGeometry& geometry, Parameter& weight, Random& random);

}  // namespace mh
