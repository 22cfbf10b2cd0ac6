// Context: everything that differs between training, inference and cached decoding
// (tape, dropout, observers, interventions). It is passed through the layers, so that their code is the
// same in all cases.
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
#include "multihead/nn/head_name.h"
#include "multihead/nn/sites.h"

namespace mh {

/// The weights of one attention, exp(score - lse), before dropout. Valid during the call.
struct ObservedWeights {
  std::string_view name;  // "encoder.3.self_attention", "decoder.0.cross_attention"
  int heads = 0;
  std::span<const int32_t> query_offsets;
  std::span<const int32_t> key_offsets;
  /// A matrix [Tq, Tk] for each sequence and head: all heads of sequence 0, then those of sequence 1, ...
  const float* weights = nullptr;
  ConstMatrixView values = {};  // V of all value heads side by side, [Nk, value_heads * d_value]; empty when
                                // they come from a cache
  ConstMatrixView output = {};  // [Nq, heads * d_value], before W^O

  /// [Tq, Tk]: the weight of key j for query i, in sequence s and head h.
  ConstMatrixView matrix(int s, int h) const;
};

/// What an attention projects its rows to.
enum class ProjectedTo { kQueries, kKeysAndValues };

/// Watches attentions and never changes them.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Called before weights(): the weights of an attention are computed only when an observer wants them.
  virtual bool wants_weights(std::string_view name) const = 0;
  virtual void weights(const ObservedWeights& observed) = 0;
  /// Called with the rows [N, d_model] that attention `name` is about to project, if its weights are wanted;
  /// in self-attention twice with the same rows. Not called in cached decoding.
  virtual void rows(std::string_view /*name*/, ProjectedTo, ConstMatrixView /*rows*/) {}
};

/// Mutes or scales heads: the output of a head is multiplied by its gate, which is 1 unless it was set.
class Interventions {
 public:
  struct Change {
    HeadPattern heads;
    float gate;
  };

  /// Mutes a head, e.g. "encoder.3.self_attention.1", or those that a pattern names (head_name.h), e.g. all heads of
  /// that attention, "encoder.3.self_attention.*". Throws UsageError on a name of another form.
  void mute(std::string_view heads) { set_gate(heads, 0); }
  /// Where several gates speak of one head, the last one counts.
  void set_gate(std::string_view heads, float gate);
  /// Returns a gate for each head [1, heads], in the arena's memory; empty when no head of this attention was
  /// changed. Throws UsageError when a head was named whose number is not below `heads`.
  MatrixView gates(std::string_view attention, int heads, Arena& memory) const;
  bool empty() const { return changes_.empty(); }
  /// What was asked for; a model checks that it has such heads.
  const std::vector<Change>& changes() const { return changes_; }

 private:
  std::vector<Change> changes_;
};

/// The random key of the dropout of one update. Without it there is no dropout.
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
  Sites* sites = nullptr;                    // who is called at the places of docs/sites.md

  bool wants(const Site& site) const { return sites != nullptr && sites->wants(site); }
  /// What a model goes on with at a site.
  Var at(const Site& site, const SiteValue& value) const {
    return wants(site) ? sites->at(tape, site, value) : value.value;
  }
};

/// Returns the dropout of one site for the rows of these sequences; none when the context has no key or the
/// rate is 0.
Dropout dropout_at(const Context& context, float rate, uint32_t site, const Sequences& rows);

}  // namespace mh
