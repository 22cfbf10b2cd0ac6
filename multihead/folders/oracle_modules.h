// Where Hugging Face's class of a family computes what is shown at sites (docs/sites.md): names of its modules, with which
// `multihead check` compares (share/check/site_oracle.py).
#pragma once

#include <span>
#include <string_view>

namespace mh {

/// Names of modules of a layer.
struct OracleAttention {
  std::string_view site = "self_attention";
  std::string_view module;  // reads the rows of which queries are made
  std::string_view queries;
  std::string_view keys = {};      // empty: the module `queries` makes queries, keys and values at once,
  bool by_head = false;            // head by head, or all queries first
  std::string_view output;         // W^O
  std::string_view added = {};     // what it gives is added to the layer's input; empty: `module`
  std::string_view sum = {};       // gives that sum itself; empty: no module does
  std::string_view sum_norm = {};  // the norm of that sum in stacks with norms after sublayers
  bool scaled_queries = false;     // the class scales queries before it compares them with keys
  bool float32_softmax = false;    // the class rounds the scores for the softmax
  // "gpt_neo", "mpnet", "deberta": the class computes attention in its own way, without AttentionInterface.
  std::string_view own_function = {};
};

struct OracleStack {
  std::string_view name = "decoder";
  std::string_view layers;       // a module of the base model
  std::string_view states = {};  // what gives the last states, likewise; empty, or not there: the last layer
  std::span<const OracleAttention> attentions;
  std::string_view second_linear;  // reads the hidden units of the feed-forward layer
};

struct OracleModules {
  std::span<const OracleStack> stacks;
  std::string_view pooler = {};
};

}  // namespace mh
