// StreamGraph: a model as a graph along its residual streams. What writes into a stream is a source, what reads it is a target, and
// an edge leads from each source to each target that reads the stream behind it.
//
//   sources   the embeddings of a stack, each head of an attention, each feed-forward layer
//   targets   the input of the queries, the keys and the values of each head (of grouped heads one for each group of keys and
//             values), the input of each feed-forward layer, and the last states, by which the model decides
//
// Cross-attention's keys and values read the encoder's last states, its queries the decoder's stream.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/heads/circuit/heads_circuit.h"
#include "multihead/models/model.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {

/// A sublayer as the stream passes it: stream = after(stream + output(sublayer(before(stream)))), each norm only where it is there.
struct StreamSublayer {
  std::string name = {};                           // "decoder.3.self_attention", "decoder.3.feed_forward"
  const MultiHeadAttention* attention = nullptr;   // null: a feed-forward layer
  std::string output_site = {}, behind_site = {};  // what it adds, before `output`; and the stream behind it
  NormParameters before = {}, output = {}, after = {};  // without a gain there is none
  int reads = 0;  // the sublayer before which it reads its stream: itself, unless sublayers are parallel
  int first_source = 0;  // the number of its first source
  int sources = 1;       // a head each, or the feed-forward layer

  std::string heads_site() const { return name + ".heads"; }
};

struct Stream {
  std::string stack = {};
  std::vector<StreamSublayer> sublayers = {};
  NormParameters end = {};
  int embeddings = 0;  // the number of that source

  std::string embeddings_site() const { return stack + ".embeddings"; }
  /// That of the stream before a sublayer, or for their number at its end.
  std::string site_before(int place) const {
    return place == 0 ? embeddings_site() : sublayers[static_cast<size_t>(place - 1)].behind_site;
  }
  /// Whether no norm stands on the way, so that the stream is the sum of what was written.
  bool is_sum() const;
};

struct StreamSource {
  int stream = 0;
  int sublayer = -1;  // of the stream; -1: the embeddings
  int head = -1;
  std::string name = {};  // "decoder.embeddings", "decoder.3.self_attention.5", "decoder.3.feed_forward"
};

using TargetKind = CircuitInput;

struct StreamTarget {
  int stream = 0;  // which it reads
  int place = 0;   // before which sublayer of it; their number: at its end
  NormParameters norm = {};
  int owner = 0;      // the stream of the sublayer that reads
  int sublayer = -1;  // that one; -1: the last states
  TargetKind kind = TargetKind::kStates;
  int head = 0;           // of queries the head, of keys and values the head of these
  std::string name = {};  // "decoder.3.self_attention.5.queries", "decoder.3.feed_forward", "decoder.states"
};

class StreamGraph {
 public:
  /// Throws UsageError naming an attention whose heads have no queries, keys and values of their own. REQUIRES: model outlives this.
  explicit StreamGraph(const Model& model);

  const Model& model() const { return model_; }
  const std::vector<Stream>& streams() const { return streams_; }
  const std::vector<StreamSource>& sources() const { return sources_; }
  const std::vector<StreamTarget>& targets() const { return targets_; }
  /// The targets of one part of one sublayer, in the order of heads: numbers first ... first + count - 1.
  struct Targets {
    int first = 0, count = 0;
  };
  Targets targets_of(int stream, int sublayer, TargetKind kind) const;
  /// The site at which a target's kind is met, and those of the sublayer's heads.
  static std::string site_of(const StreamSublayer& sublayer, TargetKind kind);

  struct Edge {
    int source = 0, target = 0;
    bool operator==(const Edge&) const = default;
  };
  /// All edges, targets in the order of the model.
  const std::vector<Edge>& edges() const { return edges_; }
  bool joins(int source, int target) const;
  /// The number of a sublayer of a stream in the order of a pass; -1: of its embeddings.
  int level(int stream, int sublayer) const;
  /// The targets that a source is made of: those of its feed-forward layer, or its head's queries, keys and values.
  const std::vector<int>& made_of(int source) const { return made_of_[static_cast<size_t>(source)]; }
  std::string name(const Edge& edge) const;

 private:
  void add_stream(const StackConfig& stack,
                  const std::map<std::string, const Parameter*, std::less<>>& parameters);
  void add_targets(int stream);
  bool feeds(const StreamTarget& target, const StreamSource& source) const;

  const Model& model_;
  std::vector<Stream> streams_;
  std::vector<StreamSource> sources_;
  std::vector<StreamTarget> targets_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> made_of_;  // by source
};

/// A choice of edges: of each target the sources that it reads.
class EdgeSet {
 public:
  EdgeSet(const StreamGraph& graph, bool all);
  EdgeSet(const StreamGraph& graph, const std::vector<StreamGraph::Edge>& edges);

  bool has(int source, int target) const { return has_[index(source, target)]; }
  void put(const StreamGraph::Edge& edge, bool in) { has_[index(edge.source, edge.target)] = in; }
  /// Without edges that no way from embeddings leads to, or from which none leads to the last states: they change nothing.
  std::vector<StreamGraph::Edge> connected(const StreamGraph& graph) const;

 private:
  size_t index(int source, int target) const {
    return static_cast<size_t>(target) * sources_ + static_cast<size_t>(source);
  }
  size_t sources_;
  std::vector<bool> has_;
};

}  // namespace mh
