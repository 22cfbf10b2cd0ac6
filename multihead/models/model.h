// What every kind of Transformer has in common: named attentions, whose heads can be watched and muted, and
// named parameters. The kinds: encoder_model.h, causal_model.h, encoder_decoder.h; the last two say which
// token comes next (language_model.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/nn/context.h"

namespace mh {

class MultiHeadAttention;
class Stack;

/// What a caller must know to ask a model.
struct ModelFacts {
  int32_t source_vocabulary = 0;  // of what an encoder reads; 0: there is none
  int32_t vocabulary = 0;         // of what it says; 0: nothing
  int32_t max_positions = 0;      // tokens of a sequence, at most
  int32_t pad_id = -1;            // -1: there is none
  int32_t eos_id = -1;
  int32_t start_id = -1;  // what a decoder reads first

  /// Of what it is given to read: the source's, or a decoder's own.
  int32_t vocabulary_read() const { return source_vocabulary > 0 ? source_vocabulary : vocabulary; }
  /// Throws UsageError unless it turns one text into another.
  void require_translator() const;
};

/// Inference is const, and any number of threads may infer at once; the work inside is spread over the pool.
/// A weight is packed by its first use. Training is for one thread at a time.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  virtual ModelFacts facts() const = 0;
  /// Reads a text for the sake of who watches, and returns the last states. target: what an encoder-decoder's
  /// decoder reads; empty: its encoder alone runs. Of other models it must be empty.
  virtual Var read(Context& context, const Sequences& text, const Sequences& target) const = 0;

  /// "encoder.3.self_attention", "decoder.0.cross_attention", ... in order: what observers see and
  /// interventions name; with the number of heads.
  struct AttentionName {
    std::string name;
    int heads;
  };
  std::vector<AttentionName> attentions() const;
  /// Throws UsageError on a name that is none of these, saying what there is.
  MultiHeadAttention& attention(std::string_view name);
  const MultiHeadAttention& attention(std::string_view name) const;
  /// Throws UsageError naming what this model does not have, and what it has.
  void check(const Interventions& interventions) const;

  /// Every parameter once, with its name, in a fixed order. "logits_bias" is stored but neither trained nor
  /// counted.
  virtual void visit(const ParameterVisitor& visitor) = 0;
  void visit(const ConstParameterVisitor& visitor) const;
  int64_t parameter_count() const;

 protected:
  /// The stacks, in order.
  virtual std::vector<Stack*> stacks() = 0;

 private:
  std::vector<const Stack*> stacks() const;
  [[noreturn]] void throw_no_attention(std::string_view name) const;
};

}  // namespace mh
