// From rows to the queries, keys and values of all heads: one class a geometry, behind one interface.
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

/// What the kernel is told (AttentionInputs). Query head i reads key head i * key_heads / heads, and so for
/// values.
struct HeadShape {
  int heads = 1, key_heads = 1, value_heads = 1;
  int d_key = 0, d_value = 0;
  float scale = 1;
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

// One file each:
std::unique_ptr<Heads> make_whole_row_heads(const HeadGeometry& geometry, int d_model);
std::unique_ptr<Heads> make_segment_heads(const HeadGeometry& geometry, int d_model);
std::unique_ptr<Heads> make_merged_heads(const HeadGeometry& geometry, int d_model);
std::unique_ptr<Heads> make_doubled_heads(const HeadGeometry& geometry, int d_model);
std::unique_ptr<Heads> make_collaborative_heads(const HeadGeometry& geometry, int d_model);
std::unique_ptr<Heads> make_normalised_heads(std::unique_ptr<Heads> heads, const HeadGeometry& geometry);

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
