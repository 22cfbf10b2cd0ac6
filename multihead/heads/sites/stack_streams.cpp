#include "multihead/heads/sites/stack_streams.h"

#include <fmt/format.h>

#include "multihead/nn/stack_config.h"

namespace mh {

StackStreams::StackStreams(const Model& model) {
  for (const StackConfig* stack : model.stack_configs())
    layers_[stack->name] = static_cast<int>(stack->layers.size());
}

std::string StackStreams::site(const std::string& stack, int layer) const {
  const int layers = layers_.at(stack);
  return layer < layers ? fmt::format("{}.{}.input", stack, layer)
                        : fmt::format("{}.{}.output", stack, layers - 1);
}

void StackStreams::keep(SiteValues& values) const {
  for (const auto& [stack, layers] : layers_) {
    for (int i = 0; i <= layers; ++i) values.keep(site(stack, i));
  }
}

std::vector<LayerStart> StackStreams::starts(
    const std::string& stack, int layer,
    const std::function<ConstMatrixView(const std::string& site)>& value_of) const {
  std::vector<LayerStart> starts;
  const auto add = [&](const std::string& name, int from) {
    starts.push_back(
        {.stack = layers_.find(name)->first, .layer = from, .input = value_of(site(name, from))});
  };
  add(stack, layer);
  if (const auto encoder = layers_.find("encoder"); stack == "decoder" && encoder != layers_.end())
    add(encoder->first, encoder->second);
  return starts;
}

}  // namespace mh
