// StreamParts: what the sublayers of a model's last stack add to its residual stream in a pass, each with the gradient at its place.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/nn/sites.h"

namespace mh {

/// For one pass on a tape that follows Tape::Paths::kStream; what it saw lives on the tape.
class StreamParts final : public Sites {
 public:
  struct Part {
    std::string owner;  // of the site
    SitePart part = SitePart::kHeads;
    int blocks = 1;
    ConstMatrixView value = {};       // [N, columns]
    ConstMatrixView gradient = {};    // of the same shape, after the backward pass
    const Parameter* bias = nullptr;  // [1, columns], which is added just before this place
  };
  /// REQUIRES: model outlives this.
  explicit StreamParts(const Model& model);

  const std::string& stack() const { return stack_; }
  /// In the order of the pass.
  const std::vector<Part>& parts() const { return parts_; }

  bool wants(const Site& site) const override;
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;

 private:
  std::string stack_;                               // the last one
  std::map<std::string, const Parameter*> biases_;  // by the name of the site behind them
  std::vector<Part> parts_;
};

}  // namespace mh
