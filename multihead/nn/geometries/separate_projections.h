// A base class for heads whose queries, keys and values are three separate projections. Only geometries of
// that kind include it.
#pragma once

#include <string>

#include "multihead/nn/heads.h"

namespace mh {

/// The name of a d_model x d_model matrix that comes before the heads' own: "w_before_q".
inline std::string before_name(HeadPart part) {
  return std::string("w_before_") + letter_of(part);
}

/// Projection has Var apply(Context&, Var) and void visit(name, part, visitor). The derived class
/// initialises q_, k_ and v_.
template <class Projection>
class SeparateProjections : public Heads {
 public:
  HeadShape shape() const override {
    return {geometry_.heads, geometry_.key_heads, geometry_.value_heads,
            geometry_.d_key, geometry_.d_value,   *geometry_.scale};
  }
  ProjectedHeads project(Context& context, Var x) const override {
    return {q_.apply(context, x), k_.apply(context, x), v_.apply(context, x)};
  }
  Var queries(Context& context, Var x) const override { return q_.apply(context, x); }
  KeysValues keys_and_values(Context& context, Var memory) const override {
    return {k_.apply(context, memory), v_.apply(context, memory)};
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    q_.visit(name, HeadPart::kQueries, visitor);
    k_.visit(name, HeadPart::kKeys, visitor);
    v_.visit(name, HeadPart::kValues, visitor);
  }

 protected:
  /// make(heads, size) returns the projection to so many heads of that size.
  template <class Make>
  SeparateProjections(const HeadGeometry& geometry, const Make& make)
      : geometry_(geometry),
        q_(make(geometry.heads, geometry.d_key)),
        k_(make(geometry.key_heads, geometry.d_key)),
        v_(make(geometry.value_heads, geometry.d_value)) {}

  HeadGeometry geometry_;
  Projection q_, k_, v_;
};

}  // namespace mh
