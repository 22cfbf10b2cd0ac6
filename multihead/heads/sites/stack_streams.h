// The streams of a model's stacks, by which a pass over the same sequences can begin at a later layer (LayerStart).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "multihead/base/matrix_view.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/model.h"
#include "multihead/nn/context.h"

namespace mh {

class StackStreams {
 public:
  explicit StackStreams(const Model& model);

  /// How many layers each stack has, by its name.
  const std::map<std::string, int>& layers() const { return layers_; }
  /// The site of what a layer reads, "decoder.3.input"; for the number of layers, what the last one gives, "decoder.5.output".
  std::string site(const std::string& stack, int layer) const;
  /// Keeps all of them.
  void keep(SiteValues& values) const;
  /// Where a pass begins that goes on from this layer of a stack; value_of gives the values at a site. For a decoder it
  /// begins its encoder with that one's output. REQUIRES: this outlives the result.
  std::vector<LayerStart> starts(
      const std::string& stack, int layer,
      const std::function<ConstMatrixView(const std::string& site)>& value_of) const;

 private:
  std::map<std::string, int> layers_;
};

}  // namespace mh
