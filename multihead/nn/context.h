// What differs between training, inference and cached decoding travels here; the layers are the same code.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/batch/batch.h"
#include "multihead/kernels/attention.h"
#include "multihead/nn/disagreement.h"

namespace mh {

/// One attention's weights, while they exist: before dropout, exp(score - lse).
struct ObservedWeights {
  std::string_view name;  // "encoder.3.self_attention", "decoder.0.cross_attention"
  int heads = 0;
  std::span<const int32_t> query_offsets;
  std::span<const int32_t> key_offsets;
  const float* weights =
      nullptr;  // for sequence s and head h a matrix [Tq, Tk], in that order, one behind the other
  ConstMatrixView values = {};  // V of all value heads side by side, [Nk, value_heads * d_value]; when they
                                // are not gathered from a cache
  ConstMatrixView output = {};  // [Nq, heads * d_value], before W^O

  /// [Tq, Tk]: how much query i reads key j. Sequences must be walked in order: `offset` is where sequence s
  /// begins.
  ConstMatrixView matrix(int s, int h) const;
};

/// What an attention projects rows to.
enum class ProjectedTo { kQueries, kKeysAndValues };

/// Watches, never steers.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Asked first: the weights are made only for those who want them.
  virtual bool wants_weights(std::string_view name) const = 0;
  virtual void weights(const ObservedWeights& observed) = 0;
  /// The rows [N, d_model] that attention `name`, whose weights are wanted, is about to project; in
  /// self-attention the same rows twice. Not called in cached decoding.
  virtual void rows(std::string_view /*name*/, ProjectedTo, ConstMatrixView /*rows*/) {}
};

/// Changes to what heads do: the output of head h of attention `name` is multiplied by gate(name)[h].
class Interventions {
 public:
  /// "encoder.3.self_attention.1": attention and head. Throws UsageError on a name of another form.
  void mute(const std::string& head) { set_gate(head, 0); }
  void set_gate(const std::string& head, float gate);
  /// A gate for each head, in the arena's memory; empty when nothing was asked of this attention. Throws
  /// UsageError when a head number is not below `heads`.
  std::span<const float> gates(std::string_view attention, int heads, Arena& memory) const;
  /// Throws that UsageError.
  void check(std::string_view attention, int heads) const { find(attention, heads); }
  bool empty() const { return changes_.empty(); }
  /// The attentions named; a model checks that it has them.
  std::vector<std::string> attentions() const;

 private:
  struct Change {
    std::string attention;
    std::vector<float> gates;  // as long as the highest head named; 1 beyond
  };
  /// Null when nothing was asked of this attention.
  const Change* find(std::string_view attention, int heads) const;
  std::vector<Change> changes_;
};

/// Dropout of one update. Without it layers evaluate.
struct DropoutKey {
  uint64_t seed = 0;
  uint64_t update = 0;
};

struct Context {
  Tape& tape;
  std::optional<DropoutKey> dropout = std::nullopt;
  Observer* observer = nullptr;
  const Interventions* interventions = nullptr;
  HeadSimilaritySums* similarity = nullptr;  // where attentions add how similar their heads are
};

/// The dropout of one site for rows of these sequences; none when the context evaluates or the rate is 0.
Dropout dropout_at(const Context& context, float rate, uint32_t site, const Sequences& rows);

}  // namespace mh
