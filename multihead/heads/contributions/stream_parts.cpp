#include "multihead/heads/contributions/stream_parts.h"

#include <fmt/format.h>

#include "multihead/nn/stack_config.h"

namespace mh {
namespace {

/// The biases that are added to the stream, and the site behind each. With norms before the sublayers alone a norm's bias is a part
/// of what the sublayer reads.
std::vector<std::pair<std::string, std::string>> biases_of_layer(const StackConfig& stack, size_t number) {
  const std::string layer = fmt::format("{}.{}", stack.name, number);
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* attention : {"self_attention", "cross_attention"})
    found.emplace_back(fmt::format("{}.{}.b_o", layer, attention),
                       fmt::format("{}.{}.output", layer, attention));
  const NormPlacement placement = stack.norm.placement;
  const char* const norm = placement == NormPlacement::kPost ? "norm"
                           : norms_output(placement)         ? "output_norm"
                                                             : nullptr;
  if (norm == nullptr) return found;
  for (const auto& [sublayer, behind] : {std::pair("self_attention", "after_self_attention"),
                                         {"cross_attention", "after_cross_attention"},
                                         {"feed_forward", "output"}})
    found.emplace_back(fmt::format("{}.{}_{}.bias", layer, sublayer, norm),
                       fmt::format("{}.{}", layer, behind));
  return found;
}

}  // namespace

StreamParts::StreamParts(const Model& model) {
  const StackConfig& stack = *model.stack_configs().back();
  stack_ = stack.name;
  std::map<std::string, const Parameter*, std::less<>> parameters;
  model.visit(ConstParameterVisitor(
      [&](const std::string& name, const Parameter& parameter) { parameters[name] = &parameter; }));
  const auto add = [&](const std::string& bias, const std::string& site) {
    if (const auto found = parameters.find(bias); found != parameters.end()) biases_[site] = found->second;
  };
  for (size_t layer = 0; layer < stack.layers.size(); ++layer) {
    for (const auto& [bias, site] : biases_of_layer(stack, layer)) add(bias, site);
  }
  add(stack_ + ".final_norm.bias", stack_ + ".states");
}

bool StreamParts::wants(const Site& site) const {
  if (!site.owner.starts_with(stack_)) return false;
  switch (site.part) {
    case SitePart::kEmbeddings:
    case SitePart::kHeads:
    case SitePart::kFeedForward:
    case SitePart::kStates:
      return true;
    case SitePart::kAttentionOutput:
    case SitePart::kAfterSelfAttention:
    case SitePart::kAfterCrossAttention:
    case SitePart::kOutput:
      return biases_.contains(site.name());
    default:
      return false;
  }
}

Var StreamParts::at(Tape& tape, const Site& site, const SiteValue& value) {
  const Tape::Watched watched = tape.watch(value.value);
  const auto bias = biases_.find(site.name());
  parts_.push_back({.owner = std::string(site.owner),
                    .part = site.part,
                    .blocks = value.blocks,
                    .value = watched.value.value(),
                    .gradient = watched.gradient,
                    .bias = bias != biases_.end() ? bias->second : nullptr});
  return watched.value;
}

}  // namespace mh
