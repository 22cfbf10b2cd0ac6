// Gates that learn which heads a model needs (Voita et al. 2019, "Analyzing multi-head self-attention: specialized heads do the heavy
// lifting, the rest can be pruned"): the output of each head is multiplied by a gate z of the hard concrete distribution
// (nn/hard_concrete.h), and the loss gets a price for heads that are open:
//
//   loss + lambda sum_heads P(z != 0)
//
// The noise is a function of (seed, update, attention, head): all sentences of an update, in whatever batches and on whatever
// rank, have the same gates. Without noise, in validation and in what is saved, a gate is a factor of the head's rows of W^O
// (FoldedGates), so that a model with gates is a model as any other, whose closed heads have rows of zeros.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/models/model.h"
#include "multihead/nn/sites.h"
#include "multihead/tensor/tensor.h"

namespace mh {

class HeadGates final : public Sites {
 public:
  /// A gate for each head. They begin open: without noise all are exactly 1. Throws UsageError on an attention without W^O.
  explicit HeadGates(const Model& model);

  /// "head_gates.encoder.0.self_attention" [1, heads]: p, of which log alpha = kStart + kSpeed p. With kSpeed, gates are learned at a
  /// rate kSpeed times that of the weights, which have far less of a way to go.
  void visit(const ParameterVisitor& visitor);
  static constexpr double kStart = 2.5, kSpeed = 10;

  /// Draws the gates of an update.
  void draw(uint64_t seed, uint64_t update);
  /// Adds `weight` times the gradient of sum_heads P(z != 0).
  void add_price(double weight);

  /// What is open now, without noise.
  struct Open {
    int64_t heads = 0, open = 0;  // open: the gate is not 0
    double expected = 0;          // sum P(z != 0)
  };
  Open open() const;
  /// Without noise, of an attention's heads.
  std::vector<double> gates_of(std::string_view attention) const;
  /// From now on all gates are 1 without noise, as for a model into which they are folded for good.
  void reset();

  bool wants(const Site& site) const override { return site.part == SitePart::kGates; }
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;

 private:
  struct Attention {
    std::string name;
    std::unique_ptr<Parameter> parameter;  // [1, heads]; layers keep its place
    std::vector<float> z, slope;           // as drawn; slope by p
    double log_alpha(int head) const {
      return kStart + kSpeed * static_cast<double>(parameter->value(0, head));
    }
  };
  std::vector<Attention> attentions_;
};

/// While it lives, the rows of W^O of every head are multiplied by its gate without noise; then they are what they were, bit for bit.
class FoldedGates {
 public:
  /// REQUIRES: both outlive this, and the gates are the model's.
  FoldedGates(Model& model, const HeadGates& gates);
  ~FoldedGates();
  FoldedGates(const FoldedGates&) = delete;
  FoldedGates& operator=(const FoldedGates&) = delete;

 private:
  struct Kept {
    Parameter* parameter = nullptr;
    Tensor value = {};
  };
  std::vector<Kept> kept_;
};

/// The heads whose rows of W^O are all 0, in the order of attentions.
std::vector<std::string> closed_heads(const Model& model);

}  // namespace mh
