#include "multihead/models/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/stack.h"

namespace mh {

void ModelFacts::require_translator() const {
  if (source_vocabulary > 0 && vocabulary > 0) return;
  throw UsageError(source_vocabulary > 0 ? "this model says no tokens; take an encoder-decoder"
                                         : "this model reads no source; take an encoder-decoder");
}

void ModelFacts::require_causal() const {
  if (source_vocabulary == 0 && vocabulary > 0) return;
  throw UsageError(vocabulary > 0 ? "this model translates and continues no text; take a causal model"
                                  : "this model says no tokens; take a causal model");
}

std::vector<const Stack*> Model::stacks() const {
  const std::vector<Stack*> all = const_cast<Model*>(this)->stacks();
  return {all.begin(), all.end()};
}

std::vector<Model::AttentionName> Model::attentions() const {
  std::vector<AttentionName> names;
  for (const Stack* stack : stacks()) {
    stack->visit_attentions([&](const MultiHeadAttention& attention) {
      names.push_back({attention.name(), attention.heads()});
    });
  }
  return names;
}

MultiHeadAttention& Model::attention(std::string_view name) {
  for (Stack* stack : stacks()) {
    if (MultiHeadAttention* found = stack->find_attention(name)) return *found;
  }
  throw_no_attention(name);
}

const MultiHeadAttention& Model::attention(std::string_view name) const {
  return const_cast<Model*>(this)->attention(name);
}

void Model::throw_no_attention(std::string_view name) const {
  // Of each kind the first and the last, so that the line stays short in models of many layers.
  std::vector<std::string> there;
  const auto add = [&](const StackConfig& config, const char* kind) {
    const size_t last = config.layers.size() - 1;
    there.push_back(fmt::format("{}.0.{}", config.name, kind));
    if (last > 0) there.back() += fmt::format(" to {}.{}.{}", config.name, last, kind);
  };
  for (const Stack* stack : stacks()) {
    add(stack->config(), "self_attention");
    if (stack->config().cross_attention) add(stack->config(), "cross_attention");
  }
  throw UsageError(fmt::format("this model has no attention '{}'; it has {}", name, fmt::join(there, ", ")));
}

void Model::check(const Interventions& interventions) const {
  for (const std::string& name : interventions.attentions())
    interventions.check(name, attention(name).heads());
}

void Model::visit(const ConstParameterVisitor& visitor) const {
  // Layers walk over their parameters in one way only; who reads gets them as const.
  const_cast<Model*>(this)->visit(ParameterVisitor(visitor));
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    if (name != "logits_bias") count += parameter.value.size();
  }));
  return count;
}

}  // namespace mh
