#include "multihead/models/config_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/models/encoder_decoder_config.h"

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

std::string no_activation() {
  return "activation is none; expected relu, gelu, gelu_tanh or swish";
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

void check_geometry(std::vector<std::string>& found, std::string_view prefix, const HeadGeometry& geometry,
                    Positions positions, int d_model) {
  std::vector<std::string> wrong = problems_of(geometry, d_model);
  if (wrong.empty()) wrong = problems_of(positions, geometry, d_model);
  for (const std::string& problem : wrong) found.push_back(fmt::format("{}{}", prefix, problem));
}

namespace {

void check_rates(std::vector<std::string>& found, const DropoutRates& rates) {
  check_rate(found, "dropout", rates.residual);
  check_rate(found, "attention_dropout", rates.weights);
  check_rate(found, "activation_dropout", rates.activation);
}

}  // namespace

void check_stack(std::vector<std::string>& found, const StackConfig& stack, int64_t d_model) {
  check_range(found, "layers", static_cast<int64_t>(stack.layers.size()), 1, 1024);
  if (stack.d_model != d_model)
    found.push_back(
        fmt::format("the stack's d_model is {}, that of the embeddings {}", stack.d_model, d_model));
  if (!(stack.norm.epsilon > 0 && std::isfinite(stack.norm.epsilon)))
    found.push_back(fmt::format("the norm's epsilon is {}; expected a number above 0", stack.norm.epsilon));
  if (const std::string wrong = problem_of(stack.buckets); !wrong.empty()) found.push_back(wrong);
  if (stack.positions == Positions::kDisentangled) {
    if (const std::string wrong = problem_of(stack.disentangled); !wrong.empty()) found.push_back(wrong);
    if (!all_look(AttentionDirection::kBidirectional, stack))
      found.emplace_back("positions disentangled are for encoders; use alibi, t5 or shaw");
  }
  if (stack.order != SublayerOrder::kOneAfterAnother &&
      (stack.norm.placement != NormPlacement::kPre || stack.cross_attention))
    found.emplace_back("parallel sublayers need norms before them, and no cross-attention");
  for (size_t i = 0; i < stack.layers.size() && found.empty(); ++i) {
    const LayerConfig& layer = stack.layers[i];
    check_range(found, "d_ff", layer.feed_forward.d_ff, 1, 1 << 20);
    if (layer.feed_forward.activation == Activation::kNone) found.push_back(no_activation());
    if (stack.mask_of(i).has_window()) check_range(found, "window", stack.mask_of(i).window, 1, 1 << 24);
    const std::string name = fmt::format("{}.{}", stack.name, i);
    check_geometry(found, name + ".self_attention: ", layer.self_attention, stack.positions_of(i),
                   stack.d_model);
    if (stack.cross_attention)
      check_geometry(found, name + ".cross_attention: ", layer.cross_attention, Positions::kNone,
                     stack.d_model);
  }
  check_rates(found, stack.dropout);
}

void check_dropout_and_words(std::vector<std::string>& found, const EncoderDecoderConfig& config,
                             const ConfigNames& names) {
  check_rates(found, config.encoder.dropout);
  const int64_t source = config.embedding.vocabulary, target = config.target_embedding.vocabulary;
  if (config.share_embeddings && target != source) {
    found.push_back(fmt::format("{} is {}; shared embeddings need that of the source, {}",
                                names.target_vocabulary, target, source));
  }
  if (target < 1) return;  // that is said; no id can be right
  check_range(found, names.pad_id, config.pad_id, 0, target - 1);
  check_range(found, names.eos_id, config.eos_id, 0, target - 1);
  check_range(found, names.start_id, config.decoder_start_id, 0, target - 1);
}

bool all_look(AttentionDirection direction, const StackConfig& stack) {
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    if (stack.mask_of(i).direction() != direction) return false;
  }
  return true;
}

double least_parameters(const StackConfig& stack) {
  const auto d = static_cast<double>(stack.d_model);
  // The usual heads have four matrices; others at least that of their queries.
  const auto of_attention = [&](const HeadGeometry& g) {
    const HeadGeometry usual{.heads = g.heads, .initialisation = g.initialisation};
    const double d_key = g.d_key > 0 ? g.d_key : d / std::max(1, g.heads);
    return (g == usual ? 4 : 1) * d * d_key * g.heads;
  };
  double all = 0;
  for (const LayerConfig& layer : stack.layers) {
    all += of_attention(layer.self_attention) +
           (layer.feed_forward.gated ? 3 : 2) * d * static_cast<double>(layer.feed_forward.d_ff);
    if (stack.cross_attention) all += of_attention(layer.cross_attention);
  }
  return all;
}

std::map<std::string, HeadGeometry*, std::less<>> heads_by_name(std::initializer_list<StackConfig*> stacks) {
  std::map<std::string, HeadGeometry*, std::less<>> all;
  for (StackConfig* const stack : stacks) {
    for (size_t i = 0; i < stack->layers.size(); ++i) {
      const std::string layer = fmt::format("{}.{}", stack->name, i);
      all[layer + ".self_attention"] = &stack->layers[i].self_attention;
      if (stack->cross_attention) all[layer + ".cross_attention"] = &stack->layers[i].cross_attention;
    }
  }
  return all;
}

void put_heads(const std::map<std::string, HeadGeometry, std::less<>>& heads,
               std::initializer_list<StackConfig*> stacks) {
  const auto there = heads_by_name(stacks);
  for (const auto& [attention, geometry] : heads) {
    const auto found = there.find(attention);
    if (found == there.end()) throw UsageError(fmt::format("the model has no attention {}", attention));
    *found->second = geometry;
  }
}

}  // namespace mh
