// CausalModel: a decoder without an encoder (GPT-2, Radford et al. 2019; Llama, Touvron et al. 2023). Each
// token sees itself and the tokens before it, and the model says which token comes next. A classifier has a layer of labels in
// the place of the output layer (LlamaForSequenceClassification).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/models/config_names.h"
#include "multihead/models/label_head.h"
#include "multihead/models/language_model.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/stack.h"

namespace mh {

struct CausalConfig {
  EmbeddingConfig embedding = {};             // vocabulary, d_model, scale
  Positions positions = Positions::kLearned;  // added to embeddings, or used by the stack's attentions
  int32_t max_positions = 1024;
  int32_t position_offset = 0;               // rows of a learned table before the row of position 0
  StackConfig stack = {};                    // its name is "decoder"; its mask is causal or a window
  bool tied = true;                          // the output layer uses the embedding's table
  bool output_bias = false;                  // whether the output layer has one, [1, V], which is not trained
  bool predicts = true;                      // no: there is no output layer, and only states come out
  std::optional<float> logit_soft_cap = {};  // logits l become cap tanh(l / cap); unset: they are not capped
  std::optional<LabelConfig> labels = {};    // set: it is a classifier, and predicts is no; unset: it is none
  int32_t pad_id = -1, eos_id = -1, start_id = -1;  // -1: none
};

/// Returns everything that is wrong with a configuration, one clause each; empty when a model can be built.
std::vector<std::string> problems_of(const CausalConfig& config, const ConfigNames& names = {});
/// Returns a lower bound of the number of parameters. It is a double, since a configuration from a file may
/// ask for more than an integer can count.
double least_parameters(const CausalConfig& config);

class CausalModel final : public LanguageModel {
 public:
  /// All weights are 0. Throws UsageError when the configuration has problems_of().
  explicit CausalModel(const CausalConfig& config);

  const CausalConfig& config() const { return config_; }
  /// Sets random weights, a function of the seed.
  void initialise(uint64_t seed);

  ModelKind kind() const override { return ModelKind::kCausal; }
  ModelFacts facts() const override;
  EmbeddingConfig embedding_config() const override { return config_.embedding; }
  std::unique_ptr<Model> with_heads(const HeadsOfAttentions& heads) const override;
  bool predicts() const override { return config_.predicts; }
  /// Throws UsageError when the model predicts nothing.
  const VocabularyHead& vocabulary() const override;
  const LabelHead* label_head() const override { return labels_.get(); }
  Var states(Context& context, const Sequences& source, const Sequences& target_in) const override;
  void start(Context& context, const Sequences& source, StackCache& cache) const override;
  Var extend(Context& context, std::span<const int32_t> tokens, const NewRows& rows,
             StackCache& cache) const override;

  using Model::visit;
  void visit(const ParameterVisitor& visitor) override;

 private:
  CausalModel(const CausalConfig& config, DropoutStreams streams);
  Var last_states(Context& context, const Sequences& text, const Sequences& target) const override;
  std::vector<Stack*> stacks() override { return {&stack_}; }

  CausalConfig config_;
  Embedding embedding_;
  PositionTable positions_;
  std::unique_ptr<Parameter> output_;       // [V, d_model]; null: tied, or none
  std::unique_ptr<Parameter> output_bias_;  // [1, V]; null: none
  Stack stack_;
  VocabularyHead head_;
  std::unique_ptr<LabelHead> labels_;
};

}  // namespace mh
