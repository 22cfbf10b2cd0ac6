#include "multihead/heads/conversion/prune_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/heads/conversion/convert_heads.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

using HeadSet = std::set<int>;

/// Of these muted heads those that can go, so that every group with a head left has equally many.
HeadSet heads_that_can_go(const HeadGeometry& g, HeadSet muted) {
  if (std::ssize(muted) == g.heads) muted.erase(muted.begin());
  // What shares keys but not values, or the other way round, is refused when it is removed.
  const int size = g.key_heads == g.value_heads ? g.heads / g.key_heads : 1;
  std::vector<int> gone_of(static_cast<size_t>(g.heads / size));
  for (const int head : muted) ++gone_of[static_cast<size_t>(head / size)];
  int least = size;  // of the groups that stay
  for (const int gone : gone_of) least = std::min(least, gone);
  HeadSet going;
  std::vector<int> so_far(gone_of.size());
  for (const int head : muted) {
    const auto group = static_cast<size_t>(head / size);
    if (gone_of[group] == size || so_far[group] < least) {
      going.insert(head);
      ++so_far[group];
    }
  }
  return going;
}

/// "encoder.3.self_attention" -> "encoder", where layers of its stack use the biases of another layer's heads; else nothing.
std::map<std::string, std::string> stacks_with_one_bias(const Model& model) {
  std::map<std::string, std::string> stack_of;
  std::set<std::string> own_bias;
  model.visit(ConstParameterVisitor([&](const std::string& name, const Parameter&) {
    constexpr std::string_view kBias = ".distance_bias";
    if (name.ends_with(kBias)) own_bias.insert(name.substr(0, name.size() - kBias.size()));
  }));
  std::map<std::string, std::vector<std::string>> of_stack;
  for (const Model::Attention& one : model.attentions()) {
    if (one.place.kind != AttentionKind::kCross) of_stack[std::string(one.place.stack())].push_back(one.name);
  }
  for (const auto& [stack, names] : of_stack) {
    const auto own = std::count_if(names.begin(), names.end(),
                                   [&](const std::string& name) { return own_bias.contains(name); });
    if (own == 0 || own == std::ssize(names)) continue;
    for (const std::string& name : names) stack_of[name] = stack;
  }
  return stack_of;
}

void silence(LayerWeights& layer, const std::vector<int>& heads) {
  Tensor& w_o = layer.values.at("w_o");
  const int64_t size = layer.geometry.d_value;
  for (const int head : heads) {
    for (int64_t r = 0; r < size; ++r) {
      for (int64_t c = 0; c < w_o.cols(); ++c) w_o(head * size + r, c) = 0;
    }
  }
}

}  // namespace

int64_t PrunePlan::heads() const {
  int64_t sum = 0;
  for (const PrunedAttention& one : attentions) sum += one.heads;
  return sum;
}

int64_t PrunePlan::removed() const {
  int64_t sum = 0;
  for (const PrunedAttention& one : attentions) sum += std::ssize(one.removed);
  return sum;
}

int64_t PrunePlan::silent() const {
  int64_t sum = 0;
  for (const PrunedAttention& one : attentions) sum += std::ssize(one.silent);
  return sum;
}

std::vector<HeadName> PrunePlan::removed_heads() const {
  std::vector<HeadName> names;
  for (const PrunedAttention& one : attentions) {
    for (const int head : one.removed) names.push_back({.attention = one.attention, .head = head});
  }
  return names;
}

std::vector<std::string> PrunePlan::muted() const {
  std::vector<std::string> names;
  for (const PrunedAttention& one : attentions) {
    HeadSet heads(one.removed.begin(), one.removed.end());
    heads.insert(one.silent.begin(), one.silent.end());
    for (const int head : heads) names.push_back(fmt::format("{}.{}", one.attention, head));
  }
  return names;
}

PrunePlan plan_pruning(const Model& model, std::span<const HeadPattern> heads) {
  if (heads.empty())
    throw UsageError("no head is named that is to be removed; name one, such as encoder.3.self_attention.1");
  std::map<std::string, HeadSet> muted;
  for (const HeadPattern& pattern : heads) {
    for (const HeadName& head : model.heads_named(pattern)) muted[head.attention].insert(head.head);
  }
  // Of layers that share one table of biases only what is muted in all of them may go.
  const std::map<std::string, std::string> stack_of = stacks_with_one_bias(model);
  std::map<std::string, HeadSet> of_stack;
  for (const auto& [name, stack] : stack_of) {
    const HeadSet& here = muted[name];
    const auto [found, first] = of_stack.try_emplace(stack, here);
    if (!first) std::erase_if(found->second, [&](int head) { return !here.contains(head); });
  }
  PrunePlan plan;
  for (const auto& [name, count, place] : model.attentions()) {
    const HeadGeometry& g = model.attention(name).geometry();
    const auto tied = stack_of.find(name);
    const HeadSet going =
        heads_that_can_go(g, tied == stack_of.end() ? muted[name] : of_stack.at(tied->second));
    PrunedAttention& one = plan.attentions.emplace_back();
    one = {.attention = name, .heads = count, .key_heads = g.key_heads};
    HeadSet keys_left;
    const int size = std::max(1, g.heads / g.key_heads);
    for (int head = 0; head < count; ++head) {
      if (going.contains(head)) {
        one.removed.push_back(head);
      } else {
        keys_left.insert(head / size);
        if (muted[name].contains(head)) one.silent.push_back(head);
      }
    }
    one.key_heads_removed = g.key_heads - static_cast<int>(std::ssize(keys_left));
  }
  return plan;
}

std::unique_ptr<Model> prune_heads(Model& model, const PrunePlan& plan) {
  return convert_model(model, [&](const std::string& attention, const LayerWeights& before) {
    const auto found = std::find_if(plan.attentions.begin(), plan.attentions.end(),
                                    [&](const PrunedAttention& one) { return one.attention == attention; });
    if (found == plan.attentions.end() || (found->removed.empty() && found->silent.empty())) return before;
    if (!before.has("w_o"))
      throw UsageError(
          "without W^O the heads' outputs side by side are the layer's output, and none can go; convert to "
          "canonical first");
    LayerWeights after = before;
    silence(after, found->silent);
    return found->removed.empty() ? after : without_heads(after, found->removed);
  });
}

}  // namespace mh
