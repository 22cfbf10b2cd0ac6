// A causal decoder (GPT-2, Radford et al. 2019; Llama, Touvron et al. 2023): a stack that sees what came
// before, and says what comes next.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "multihead/models/language_model.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/stack.h"

namespace mh {

struct CausalConfig {
  EmbeddingConfig embedding = {};             // vocabulary, d_model, scale
  Positions positions = Positions::kLearned;  // added to embeddings, or the stack's
  int32_t max_positions = 1024;
  int32_t position_offset = 0;                      // rows of a learned table before that of position 0
  StackConfig stack = {};                           // "decoder"; causal or a window
  bool tied = true;                                 // the embedding's table is the output's, too
  int32_t pad_id = -1, eos_id = -1, start_id = -1;  // -1: there is none
};

/// All that is wrong with a configuration, one clause each; empty when it can be built.
std::vector<std::string> problems_of(const CausalConfig& config);
/// A lower bound of its numbers, in double: a configuration may claim more than any integer holds.
double least_parameters(const CausalConfig& config);

class CausalModel final : public LanguageModel {
 public:
  /// Weights are zero. Throws UsageError on a configuration that cannot be.
  explicit CausalModel(const CausalConfig& config);

  const CausalConfig& config() const { return config_; }
  /// Random weights, a function of the seed.
  void initialise(uint64_t seed);

  ModelFacts facts() const override;
  Var read(Context& context, const Sequences& text, const Sequences& target) const override;
  const VocabularyHead& vocabulary() const override { return head_; }
  Var states(Context& context, const Sequences& source, const Sequences& target_in) const override;
  void start(Context& context, const Sequences& source, StackCache& cache) const override;
  Var extend(Context& context, std::span<const int32_t> tokens, const NewRows& rows,
             StackCache& cache) const override;

  using Model::visit;
  void visit(const ParameterVisitor& visitor) override;

 private:
  CausalModel(const CausalConfig& config, DropoutSites sites);
  std::vector<Stack*> stacks() override { return {&stack_}; }

  CausalConfig config_;
  Embedding embedding_;
  PositionTable positions_;
  std::unique_ptr<Parameter> output_;  // [V, d_model]; null: tied
  Stack stack_;
  VocabularyHead head_;
};

}  // namespace mh
