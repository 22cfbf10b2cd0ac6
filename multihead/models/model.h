// Model: what all kinds of Transformers have in common. Attentions have names ("encoder.3.self_attention"),
// under which their heads can be seen and muted, and so have parameters. There are three kinds:
// EncoderModel, CausalModel and EncoderDecoder; the last two predict the next token (language_model.h).
//
// A model reads token ids of several sequences, N in all (batch/batch.h), and computes states [N, d_model].
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/base/enum_names.h"
#include "multihead/kernels/mask.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/context.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/head_name.h"
#include "multihead/nn/positions.h"

namespace mh {

class LabelHead;
class MultiHeadAttention;
class NextWords;
class Stack;
class VocabularyHead;
struct EmbeddingConfig;
struct StackConfig;

enum class ModelKind {
  kEncoder,  // an EncoderModel, whose tokens see the whole text; and an EncoderDecoder that gives labels of one text
  kCausal,      // a CausalModel: a token sees those before it
  kTranslator,  // an EncoderDecoder that predicts tokens
};
inline constexpr EnumNames<ModelKind> kModelKindNames = {
    {"encoder", ModelKind::kEncoder}, {"causal", ModelKind::kCausal}, {"translator", ModelKind::kTranslator}};

/// The heads of attentions, by name.
using HeadsOfAttentions = std::map<std::string, HeadGeometry, std::less<>>;

/// The numbers that a caller needs to use a model.
struct ModelFacts {
  int32_t source_vocabulary = 0;  // of the encoder's input, or of a decoder without an output layer; else 0
  int32_t vocabulary = 0;         // of the tokens that it predicts; 0: it predicts none
  int32_t max_positions = 0;      // the longest sequence, in tokens
  int32_t pad_id = -1;            // -1: none
  int32_t eos_id = -1;
  int32_t start_id = -1;  // the first token that a decoder reads
  int32_t d_model = 0;    // columns of a state
  Positions positions = Positions::kNone;

  /// The vocabulary of its input: that of the encoder, or that of a causal decoder.
  int32_t vocabulary_read() const { return source_vocabulary > 0 ? source_vocabulary : vocabulary; }
  /// Throws UsageError unless the model translates a source into a target.
  void require_translator() const;
  /// Throws UsageError unless the model continues a text.
  void require_causal() const;
};

/// Inference is const, and any number of threads may call it at once; each call spreads its work over the
/// thread pool. A weight is packed when it is first used. Training is for one thread at a time.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  virtual ModelKind kind() const = 0;
  virtual ModelFacts facts() const = 0;
  /// How it embeds the tokens of the text that it reads; of an encoder-decoder those of the source.
  virtual EmbeddingConfig embedding_config() const = 0;
  /// Of each of its stacks, in the order of a forward pass. Valid as long as the model.
  std::vector<const StackConfig*> stack_configs() const;
  /// Runs the model on a text, so that its sites are called, and returns the last states. target: what the
  /// decoder of an encoder-decoder reads; if it is empty, only the encoder runs. For other models it must be
  /// empty. Throws Error when the states are not finite: what was seen at sites is then worth nothing.
  Var read(Context& context, const Sequences& text, const Sequences& target) const;

  /// One of its attentions.
  struct Attention {
    std::string name;  // "encoder.3.self_attention", "decoder.0.cross_attention"
    int heads = 0;
    AttentionPlace place = {};
  };
  std::vector<Attention> attentions() const;
  /// Returns an attention. Throws UsageError on an unknown name, listing the names that exist.
  MultiHeadAttention& attention(std::string_view name);
  const MultiHeadAttention& attention(std::string_view name) const;
  /// Returns a model of the same shape, all parameters 0, but for the heads of these attentions; the others stay. Throws
  /// UsageError on an attention that it does not have, and on invalid heads.
  virtual std::unique_ptr<Model> with_heads(const HeadsOfAttentions& heads) const = 0;
  /// Where an attention stands. Throws the same UsageError.
  AttentionPlace place(std::string_view attention) const;
  /// What the queries of an attention may see. Throws the same UsageError.
  Mask mask(std::string_view attention) const;
  /// The heads that a name or a pattern (nn/head_name.h) stands for, in the order of attentions(). Throws
  /// UsageError, listing what exists, when there are none.
  std::vector<HeadName> heads_named(const HeadPattern& pattern) const;

  /// Whether the model predicts words: the next ones, or masked ones.
  virtual bool predicts() const { return facts().vocabulary > 0; }
  /// What predicts words from word_states(). Throws UsageError when the model predicts none.
  virtual const VocabularyHead& vocabulary() const = 0;
  /// What rows of the last states become before vocabulary(): themselves, unless the model has a head for masked words.
  /// Throws UsageError when the model predicts none.
  virtual Var word_states(const Context& context, Var states) const;
  /// What these states predict, a word for each row (models/next_words.h). rows: those of the states.
  NextWords next_words(const Context& context, Var states, const Sequences& rows) const;
  /// The logits of these words, [N, V]: a site.
  Var logits(Context& context, Var states, const Sequences& rows) const;
  /// Whether it has a pooler, which makes one vector of a text's last states: a site.
  virtual bool pools() const { return false; }
  /// Runs the pooler, if the model has one, where somebody asks for its site.
  virtual void call_pooled(Context& /*context*/, Var /*states*/, const Sequences& /*rows*/) const {}
  /// The layer of labels of a classifier; null: it is none.
  virtual const LabelHead* label_head() const { return nullptr; }
  /// The logits of its labels, of each text or of each token (models/label_head.h). rows: those of the states. Throws UsageError
  /// when it is no classifier, and on a text without tokens.
  Var label_logits(Context& context, Var states, const Sequences& rows) const;
  /// Makes of the last states what somebody asks for at sites behind them: pooled vectors, labels and logits. rows: those of
  /// the states.
  void call_output_sites(Context& context, Var states, const Sequences& rows) const;

  /// The sites of the model (docs/sites.md), in the order of a forward pass.
  std::vector<SiteShape> sites() const;
  /// Throws UsageError, listing what exists, when these ask for sites or heads that the model does not have, and as
  /// Sites::check() does of the sites that it has.
  void check(const Sites& sites) const;
  /// The same, of these sites.
  void check(const Sites& sites, std::span<const SiteShape> all) const;

  /// Calls the visitor once with every parameter and its name, in a fixed order. "logits_bias" is stored
  /// but neither trained nor counted.
  virtual void visit(const ParameterVisitor& visitor) = 0;
  void visit(const ConstParameterVisitor& visitor) const;
  int64_t parameter_count() const;

 protected:
  /// read() without the check.
  virtual Var last_states(Context& context, const Sequences& text, const Sequences& target) const = 0;
  /// The rows that label_head() reads, of the last states.
  virtual Var label_rows(Context& /*context*/, Var states, const Sequences& /*rows*/) const { return states; }
  /// Returns the stacks of the model, in order.
  virtual std::vector<Stack*> stacks() = 0;

 private:
  std::vector<const Stack*> stacks() const;
  [[noreturn]] void throw_no_attention(std::string_view name) const;
};

}  // namespace mh
