// OwnHeads: the heads of one attention by its name, as files list them.
#pragma once

#include <string>

#include "multihead/nn/head_geometry.h"

namespace mh {

/// The heads of one attention that differ from those of the model.
struct OwnHeads {
  std::string attention;  // "encoder.3.self_attention"
  HeadGeometry geometry;  // with its own number of `heads`
  bool operator==(const OwnHeads&) const = default;

  template <class V>
  void visit(V& v) {
    v("attention", attention);
    v("heads", geometry.heads);
    geometry.visit(v);
  }
};

}  // namespace mh
