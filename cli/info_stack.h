// What `multihead info` says of a model of one stack: an encoder, or a causal decoder.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "multihead/folders/labels.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/stack_config.h"

namespace mh::cli {

/// What a model of one stack is, an encoder or a causal decoder.
struct OneStack {
  const StackConfig& stack;
  EmbeddingConfig embedding;
  Positions positions;
  int32_t max_positions;
  std::vector<std::string> heads;  // "pooler", "masked words", on top of it

  const LayerConfig& first() const { return stack.layers.front(); }
  Positions all_positions() const {
    return stack.positions == Positions::kNone ? positions : stack.positions;
  }
};

/// "3 of texts by softmax: entailment, neutral, contradiction", and in JSON.
std::string labels_text(const Labels& labels);
nlohmann::ordered_json label_names_json(const Labels& labels);

/// None: it has two stacks.
std::optional<OneStack> one_stack(const Model& model);

/// `sentences`: what a folder of sentence-transformers says; null for another folder.
std::string stack_table(const ModelFolder& folder, const OneStack& one, const SentenceModel* sentences);
nlohmann::ordered_json describe_stack(const ModelFolder& folder, const OneStack& one,
                                      const SentenceModel* sentences);

}  // namespace mh::cli
