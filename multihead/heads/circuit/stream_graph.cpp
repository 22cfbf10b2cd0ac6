#include "multihead/heads/circuit/stream_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "multihead/base/enum_names.h"
#include "multihead/base/error.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/stack_config.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

using Parameters = std::map<std::string, const Parameter*, std::less<>>;

NormParameters norm_named(const Parameters& parameters, const std::string& name, const NormConfig& config) {
  const auto find = [&](const char* part) {
    const auto found = parameters.find(name + part);
    return found != parameters.end() ? found->second : nullptr;
  };
  return {.gain = find(".gain"), .bias = find(".bias"), .kind = config.kind, .epsilon = config.epsilon};
}

StreamSublayer sublayer_named(const Parameters& parameters, const StackConfig& stack,
                              const std::string& name) {
  StreamSublayer found{.name = name};
  const NormParameters norm = norm_named(parameters, name + "_norm", stack.norm);
  (stack.norm.placement == NormPlacement::kPost ? found.after : found.before) = norm;
  found.output = norm_named(parameters, name + "_output_norm", stack.norm);
  found.output_site = name + ".output";
  return found;
}

void require_own_heads(const MultiHeadAttention& attention) {
  const HeadGeometry& g = attention.geometry();
  const char* why = weight_scheme_of(g).refusal(Change::kProjections);
  if (why == nullptr && !scheme_of(g).projects_keys()) why = "one matrix stands for queries and keys";
  if (why != nullptr) {
    throw UsageError(fmt::format(
        "{}: its heads have no queries, keys and values of their own ({}), so that no edge leads to them; "
        "`multihead convert` makes canonical heads of some",
        attention.name(), why));
  }
}

}  // namespace

bool Stream::is_sum() const {
  return std::all_of(sublayers.begin(), sublayers.end(), [](const StreamSublayer& sublayer) {
    return sublayer.output.gain == nullptr && sublayer.after.gain == nullptr;
  });
}

void StreamGraph::add_stream(const StackConfig& stack, const Parameters& parameters) {
  const int number = static_cast<int>(streams_.size());
  Stream stream{.stack = stack.name};
  const auto add_source = [&](int sublayer, int head, std::string name) {
    sources_.push_back({number, sublayer, head, std::move(name)});
  };
  stream.embeddings = static_cast<int>(sources_.size());
  add_source(-1, -1, stack.name + ".embeddings");
  const auto add = [&](StreamSublayer sublayer, const std::string& behind) {
    const int place = static_cast<int>(stream.sublayers.size());
    sublayer.behind_site = behind;
    sublayer.reads = place;
    sublayer.first_source = static_cast<int>(sources_.size());
    if (sublayer.attention == nullptr) {
      add_source(place, -1, sublayer.name);
    } else {
      require_own_heads(*sublayer.attention);
      sublayer.sources = sublayer.attention->heads();
      for (int h = 0; h < sublayer.sources; ++h) add_source(place, h, fmt::format("{}.{}", sublayer.name, h));
    }
    stream.sublayers.push_back(std::move(sublayer));
  };
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const std::string layer = fmt::format("{}.{}", stack.name, i);
    for (const char* kind : {"self_attention", "cross_attention"}) {
      if (kind[0] == 'c' && !stack.cross_attention) continue;
      StreamSublayer attention = sublayer_named(parameters, stack, fmt::format("{}.{}", layer, kind));
      attention.attention = &model_.attention(attention.name);
      add(std::move(attention), fmt::format("{}.after_{}", layer, kind));
    }
    StreamSublayer last = sublayer_named(parameters, stack, layer + ".feed_forward");
    if (stack.order == SublayerOrder::kParallelOneNorm) last.before = stream.sublayers.back().before;
    add(std::move(last), layer + ".output");
    if (stack.order != SublayerOrder::kOneAfterAnother) --stream.sublayers.back().reads;
  }
  if (stack.norm.is_at_end()) stream.end = norm_named(parameters, stack.name + ".final_norm", stack.norm);
  streams_.push_back(std::move(stream));
}

void StreamGraph::add_targets(int stream) {
  const Stream& own_stream = streams_[static_cast<size_t>(stream)];
  for (size_t i = 0; i < own_stream.sublayers.size(); ++i) {
    const StreamSublayer& sublayer = own_stream.sublayers[i];
    const StreamTarget own{.stream = stream,
                           .place = sublayer.reads,
                           .norm = sublayer.before,
                           .owner = stream,
                           .sublayer = static_cast<int>(i),
                           .kind = TargetKind::kFeedForward,
                           .name = sublayer.name};
    if (sublayer.attention == nullptr) {
      targets_.push_back(own);
      continue;
    }
    const bool crosses = model_.place(sublayer.name).kind == AttentionKind::kCross;
    const auto add_heads = [&](TargetKind kind, int heads, const char* part) {
      for (int h = 0; h < heads; ++h) {
        StreamTarget target = own;
        target.kind = kind;
        target.head = h;
        target.name = fmt::format("{}.{}.{}", sublayer.name, h, part);
        if (crosses && kind != TargetKind::kQueries) {
          target.stream = 0;
          target.place = static_cast<int>(streams_[0].sublayers.size());
          target.norm = streams_[0].end;
        }
        targets_.push_back(std::move(target));
      }
    };
    const HeadGeometry& g = sublayer.attention->geometry();
    add_heads(TargetKind::kQueries, g.heads, "queries");
    add_heads(TargetKind::kKeys, g.key_heads, "keys");
    add_heads(TargetKind::kValues, g.value_heads, "values");
  }
}

StreamGraph::StreamGraph(const Model& model) : model_(model) {
  Parameters parameters;
  model.visit(ConstParameterVisitor(
      [&](const std::string& name, const Parameter& parameter) { parameters[name] = &parameter; }));
  for (const StackConfig* stack : model.stack_configs()) add_stream(*stack, parameters);
  const int last = static_cast<int>(streams_.size()) - 1;
  for (int s = 0; s <= last; ++s) add_targets(s);
  const Stream& decides = streams_.back();
  targets_.push_back({.stream = last,
                      .place = static_cast<int>(decides.sublayers.size()),
                      .norm = decides.end,
                      .owner = last,
                      .name = decides.stack + ".states"});
  for (int target = 0; target < static_cast<int>(targets_.size()); ++target) {
    for (int source = 0; source < static_cast<int>(sources_.size()); ++source) {
      if (joins(source, target)) edges_.push_back({source, target});
    }
  }
  for (const StreamSource& source : sources_) {
    made_of_.emplace_back();
    for (size_t t = 0; t < targets_.size(); ++t) {
      if (feeds(targets_[t], source)) made_of_.back().push_back(static_cast<int>(t));
    }
  }
}

bool StreamGraph::feeds(const StreamTarget& target, const StreamSource& source) const {
  if (source.sublayer < 0 || target.sublayer != source.sublayer || target.owner != source.stream)
    return false;
  if (source.head < 0) return true;
  const StreamSublayer& sublayer =
      streams_[static_cast<size_t>(source.stream)].sublayers[static_cast<size_t>(source.sublayer)];
  const HeadGeometry& g = sublayer.attention->geometry();
  const int heads = target.kind == TargetKind::kQueries ? g.heads
                    : target.kind == TargetKind::kKeys  ? g.key_heads
                                                        : g.value_heads;
  return source.head * heads / g.heads == target.head;
}

StreamGraph::Targets StreamGraph::targets_of(int stream, int sublayer, TargetKind kind) const {
  Targets found;
  for (size_t i = 0; i < targets_.size(); ++i) {
    const StreamTarget& target = targets_[i];
    if (target.owner != stream || target.sublayer != sublayer || target.kind != kind) continue;
    if (found.count++ == 0) found.first = static_cast<int>(i);
  }
  return found;
}

std::string StreamGraph::site_of(const StreamSublayer& sublayer, TargetKind kind) {
  switch (kind) {
    case TargetKind::kQueries:
      return sublayer.name + ".projected_queries";
    case TargetKind::kKeys:
      return sublayer.name + ".projected_keys";
    case TargetKind::kValues:
      return sublayer.name + ".values";
    case TargetKind::kFeedForward:
      return sublayer.name + ".input";
    case TargetKind::kStates:
      break;
  }
  throw InternalError("the last states belong to no sublayer");
}

bool StreamGraph::joins(int source, int target) const {
  const StreamSource& from = sources_[static_cast<size_t>(source)];
  const StreamTarget& to = targets_[static_cast<size_t>(target)];
  return from.stream == to.stream && from.sublayer < to.place;
}

int StreamGraph::level(int stream, int sublayer) const {
  int before = 0;
  for (int s = 0; s < stream; ++s)
    before += static_cast<int>(streams_[static_cast<size_t>(s)].sublayers.size()) + 1;
  return before + sublayer + 1;
}

std::string StreamGraph::name(const Edge& edge) const {
  return fmt::format("{} -> {}", sources_[static_cast<size_t>(edge.source)].name,
                     targets_[static_cast<size_t>(edge.target)].name);
}

EdgeSet::EdgeSet(const StreamGraph& graph, bool all)
    : sources_(graph.sources().size()), has_(sources_ * graph.targets().size()) {
  if (!all) return;
  for (const StreamGraph::Edge& edge : graph.edges()) put(edge, true);
}

EdgeSet::EdgeSet(const StreamGraph& graph, const std::vector<StreamGraph::Edge>& edges)
    : EdgeSet(graph, false) {
  for (const StreamGraph::Edge& edge : edges) put(edge, true);
}

std::vector<StreamGraph::Edge> EdgeSet::connected(const StreamGraph& graph) const {
  const auto sources = graph.sources().size(), targets = graph.targets().size();
  std::vector<StreamGraph::Edge> edges;
  for (const StreamGraph::Edge& edge : graph.edges()) {
    if (has(edge.source, edge.target)) edges.push_back(edge);
  }
  for (bool changed = true; changed;) {
    std::vector<bool> read(targets), written(sources), used(sources), counts(targets);
    for (const StreamGraph::Edge& edge : edges) {
      read[static_cast<size_t>(edge.target)] = true;
      used[static_cast<size_t>(edge.source)] = true;
    }
    counts.back() = true;  // the last states
    for (size_t s = 0; s < sources; ++s) {
      written[s] = graph.sources()[s].sublayer < 0;
      for (const int t : graph.made_of(static_cast<int>(s))) {
        written[s] = written[s] || read[static_cast<size_t>(t)];
        if (used[s]) counts[static_cast<size_t>(t)] = true;
      }
    }
    const size_t before = edges.size();
    std::erase_if(edges, [&](const StreamGraph::Edge& edge) {
      return !written[static_cast<size_t>(edge.source)] || !counts[static_cast<size_t>(edge.target)];
    });
    changed = edges.size() != before;
  }
  return edges;
}

}  // namespace mh
