#include "multihead/models/config_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"

namespace mh {

void check_range(std::vector<std::string>& found, std::string_view name, int64_t value, int64_t low,
                 int64_t high) {
  if (low > high)
    return;  // nothing fits, since the number that bounds it is wrong, which is said of that one
  if (value < low || value > high)
    found.push_back(fmt::format("{} is {}; expected {} ... {}", name, value, low, high));
}

void check_rate(std::vector<std::string>& found, std::string_view name, float rate) {
  if (!(rate >= 0 && rate < 1))
    found.push_back(fmt::format("{} is {}; expected at least 0 and below 1", name, rate));
}

std::string no_divisor(std::string_view heads_name, int32_t heads, std::string_view d_model_name,
                       int32_t d_model) {
  return fmt::format("{} is {}; expected a divisor of {} {}", heads_name, heads, d_model_name, d_model);
}

void check_sizes(std::vector<std::string>& found, const EmbeddingConfig& embedding, Positions positions,
                 int64_t max_positions, const ConfigNames& names) {
  constexpr int64_t kLargestTable = int64_t{1} << 26;  // numbers of a table of positions
  check_range(found, names.vocabulary, embedding.vocabulary, 2, 1 << 24);
  check_range(found, names.d_model, embedding.d_model, 1, 1 << 16);
  check_range(found, names.max_positions, max_positions, 1, 1 << 20);
  check_range(found, "token_types", embedding.token_types, 0, 1024);
  const bool has_table = positions == Positions::kLearned || positions == Positions::kSinusoidal;
  if (found.empty() && has_table && max_positions * embedding.d_model > kLargestTable) {
    found.push_back(fmt::format("{} is {}; expected at most {} with {} {}", names.max_positions,
                                max_positions, kLargestTable / embedding.d_model, names.d_model,
                                embedding.d_model));
  }
}

void check_stack(std::vector<std::string>& found, const StackConfig& stack, int64_t d_model) {
  check_range(found, "layers", static_cast<int64_t>(stack.layers.size()), 1, 1024);
  if (stack.d_model != d_model)
    found.push_back(
        fmt::format("the stack's d_model is {}, that of the embeddings {}", stack.d_model, d_model));
  if (!(stack.norm.epsilon > 0 && std::isfinite(stack.norm.epsilon)))
    found.push_back(fmt::format("the norm's epsilon is {}; expected a number above 0", stack.norm.epsilon));
  const auto add = [&](size_t layer, const std::vector<std::string>& wrong) {
    for (const std::string& problem : wrong)
      found.push_back(fmt::format("{}.{}: {}", stack.name, layer, problem));
  };
  for (size_t i = 0; i < stack.layers.size() && found.empty(); ++i) {
    const LayerConfig& layer = stack.layers[i];
    check_range(found, "d_ff", layer.feed_forward.d_ff, 1, 1 << 20);
    if (stack.mask_of(i).has_window()) check_range(found, "window", stack.mask_of(i).window, 1, 1 << 24);
    std::vector<std::string> wrong = problems_of(layer.self_attention, stack.d_model);
    if (wrong.empty()) wrong = problems_of(stack.positions, layer.self_attention, stack.d_model);
    add(i, wrong);
    if (stack.cross_attention) add(i, problems_of(layer.cross_attention, stack.d_model));
  }
  check_rate(found, "dropout", stack.dropout.residual);
  check_rate(found, "attention_dropout", stack.dropout.weights);
  check_rate(found, "activation_dropout", stack.dropout.activation);
}

bool all_look(AttentionDirection direction, const StackConfig& stack) {
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    if (stack.mask_of(i).direction() != direction) return false;
  }
  return true;
}

double least_parameters(const StackConfig& stack) {
  const auto d = static_cast<double>(stack.d_model);
  double all = 0;
  for (const LayerConfig& layer : stack.layers) {
    const HeadGeometry& g = layer.self_attention;
    const double d_key = g.d_key > 0 ? g.d_key : d / std::max(1, g.heads);
    all += d * d_key * g.heads +
           (layer.feed_forward.gated ? 3 : 2) * d * static_cast<double>(layer.feed_forward.d_ff);
  }
  return all;
}

void put_heads(const std::map<std::string, HeadGeometry, std::less<>>& heads, StackConfig& stack) {
  for (const auto& [attention, geometry] : heads) {
    bool found = false;
    for (size_t i = 0; i < stack.layers.size() && !found; ++i) {
      found = attention == fmt::format("{}.{}.self_attention", stack.name, i);
      if (found) stack.layers[i].self_attention = geometry;
    }
    if (!found) throw UsageError(fmt::format("the model has no attention {}", attention));
  }
}

}  // namespace mh
