// Removes heads from a model for good. The model that is left gives what the given one gives with these heads muted.
//
//   const mh::HeadPattern heads[] = {mh::HeadPattern("encoder.3.self_attention.1")};
//   const mh::PrunePlan plan = mh::plan_pruning(*folder.model, heads);
//   folder.model = mh::prune_heads(*folder.model, plan);
//
// Head i of an attention adds head_i W_i^O to the attention's output, W_i^O [d_value, d_model]: a muted head adds 0, and so does
// one that is not there (Michel et al. 2019; Voita et al. 2019). Not every muted head can go:
//
// - An attention keeps one head, since a layer without any is another layer: b_o and what follows stay.
// - Where heads share keys and values, every group that is left has equally many heads of queries. A group whose heads are all
//   muted goes with its keys and values; of the others as many go as of the group that loses least.
// - Where all layers share one table of T5's biases (MPNet), a head goes when it is muted in every layer.
//
// A muted head that has to stay is silent: its W_i^O is 0, so that it adds nothing either.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/nn/head_name.h"

namespace mh {

/// What becomes of the heads of one attention. Numbers are those of the given model, rising.
struct PrunedAttention {
  std::string attention = {};
  int heads = 0, key_heads = 0;  // of the given model
  std::vector<int> removed = {};
  std::vector<int> silent = {};
  int key_heads_removed = 0;
};

struct PrunePlan {
  std::vector<PrunedAttention> attentions = {};  // all of the model, in its order

  int64_t heads() const;    // of the given model
  int64_t removed() const;  // how many go
  int64_t silent() const;   // how many stay and add nothing
  /// The heads that go.
  std::vector<HeadName> removed_heads() const;
  /// The heads that go or fall silent: those whose muting gives the same model.
  std::vector<std::string> muted() const;
};

/// What can be done about these heads; nothing is changed yet. Throws UsageError on heads that the model does not have, and
/// when no head is named.
PrunePlan plan_pruning(const Model& model, std::span<const HeadPattern> heads);

/// Returns a model without the heads of the plan. REQUIRES: the plan was made for a model of this shape. Throws UsageError that names the
/// attention and a remedy on heads that depend on each other: talking heads, ALiBi, whose slopes go by a head's number, heads
/// that read parts of a row, and heads without W^O.
std::unique_ptr<Model> prune_heads(Model& model, const PrunePlan& plan);

}  // namespace mh
