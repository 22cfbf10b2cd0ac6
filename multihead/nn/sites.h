// Sites: the places in a model at which a forward pass shows its values and goes on with what comes back. docs/sites.md
// lists them with their shapes. A site's name is its owner and its part:
//
//   encoder.embeddings  encoder.3.input  encoder.3.self_attention.queries  encoder.3.feed_forward.hidden  encoder.states
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/kernels/mask.h"
#include "multihead/nn/head_name.h"

namespace mh {

enum class SitePart {
  // Of a stack, "encoder" or "decoder".
  kEmbeddings,  // [N, d_model] what the first layer reads: tokens, positions and types, after norm and dropout
  kStates,      // [N, d_model] what the stack gives, after its last norm
  kPooled,      // [S, d_model] of an encoder with a pooler, after tanh
  kLogits,      // [N, V] of models that predict words
  kLabels,      // [S, labels] logits of a classifier of texts
  kTokenLabels,  // [N, labels] logits of a classifier of tokens
  kVectors,      // [S, dimension] of a sentence model, "sentence.vectors"
  // Of a layer, "encoder.3". With norms after the sublayers the sums are those after the norm.
  kInput,                // [N, d_model]
  kAfterSelfAttention,   // [N, d_model]
  kAfterCrossAttention,  // [N, d_model]
  kFeedForwardInput,  // [N, d_model] what the feed-forward layer reads: with norms before the sublayers, after the norm
  kHidden,            // [N, d_ff] of the feed-forward layer, after its activation
  kFeedForward,  // [N, d_model] what the feed-forward layer adds, before dropout
  kOutput,       // [N, d_model]
  // The scales of norms, [N, 1]: 1 / sqrt(variance + epsilon), or of RMS norms 1 / sqrt(mean of squares + epsilon). Those of a
  // layer stand before or after a sublayer, or normalise its output; kFinalNormScale is of a stack.
  kSelfNormScale,
  kSelfOutputNormScale,
  kCrossNormScale,
  kCrossOutputNormScale,
  kFeedForwardNormScale,
  kFeedForwardOutputNormScale,
  kFinalNormScale,
  // Of an attention, "encoder.3.self_attention"; columns of all heads side by side.
  kAttentionInput,    // [Nq, d_model] of which queries are made, and in self-attention keys and values
  kProjectedQueries,  // [Nq, heads * d_key] before norms and rotary positions
  kProjectedKeys,     // [Nk, key_heads * d_key]
  kQueries,           // [Nq, heads * d_key] as the scores take them: after norms and rotary positions
  kKeys,              // [Nk, key_heads * d_key]
  kValues,            // [Nk, value_heads * d_value]
  kGates,             // [S, heads] what the outputs of heads are multiplied by, 1 unless they are changed
  kHeads,             // [Nq, heads * d_value] the heads' outputs after their gates, before W^O
  kAttentionOutput,   // [Nq, d_out] after W^O, before dropout
  // Of one head of an attention, "encoder.3.self_attention.weights.5".
  kQueryInput,    // [Nq, d_model] of which this head's queries are made
  kKeyInput,      // [Nk, d_model] of which these keys are made; grouped heads have one for each group
  kValueInput,    // [Nk, d_model] of which these values are made, likewise
  kScores,        // [Nq, longest keys] what the softmax takes, before the mask
  kWeights,       // [Nq, longest keys] what the values are multiplied by, before dropout
  kContribution,  // [Nq, d_out] its output times its rows of W^O: its part of the sum that W^O makes
};
/// For loops over all of them.
inline constexpr SitePart kLastSitePart = SitePart::kContribution;

/// Whether there is such a site for each head of an attention.
constexpr bool is_of_one_head(SitePart part) {
  return part >= SitePart::kQueryInput;
}

/// "queries", "feed_forward.hidden": the part as it stands in a site's name.
std::string_view name_of(SitePart part);

/// A site of a model.
struct Site {
  std::string_view owner;
  SitePart part = SitePart::kEmbeddings;
  int head = 0;  // where the site is of one head

  std::string name() const;
  /// Writes as much of the name as there is room for, and returns the length of the name.
  size_t write_name(std::span<char> to) const;
};

/// The rows that the list of texts of a task has at a site; the list is read in batches, in any order.
enum class SiteRows {
  kSource,  // a row for each token of the text that an encoder reads
  kTarget,  // a row for each token of the text that a decoder reads
  kOneEach  // a row for each text
};
SiteRows rows_of(const Site& site);
/// Whose rows the keys of an attention's site are: kSource or kTarget.
SiteRows keys_of(const Site& site);

/// Where the sequences of a batch stand in the list of texts that a task was given (nn/list_sites.h).
struct ListPlaces {
  std::span<const int64_t> texts =
      {};  // [S]: the number of each sequence's text in the list; -1: it is no text of it
  std::span<const int32_t> begins = {};  // [S]: the position in its text of a sequence's first row; empty: 0
  std::optional<int64_t> count = {};     // how many texts the list has; none: that is not known yet
  /// [texts + 1]: text t has the rows offsets[t] ... offsets[t + 1] - 1 of such sites; empty: not known yet.
  std::span<const int64_t> offsets = {};
  int64_t longest = 0;    // rows of the longest text; 0: not known, or none has any
  int64_t most_keys = 0;  // of scores and weights: the most keys of a text; 0: not known
};

/// The places of rows in their sequences. Must outlive the backward pass.
struct RowPlaces {
  std::span<const int32_t> offsets = {};  // [S + 1]: sequence s has rows offsets[s] ... offsets[s + 1] - 1
  /// [N]: the position of each row in its sequence; empty: each sequence is whole and begins at position 0. In
  /// cached decoding the hypotheses of one source are one sequence, and several of its rows may have one position.
  std::span<const int32_t> positions = {};
  const ListPlaces* list = nullptr;  // valid while who is called at a site runs; null: the batch is the list

  /// The position of a row of a sequence whose rows begin at `begin`.
  int32_t position(int32_t row, int32_t begin) const {
    return positions.empty() ? row - begin : positions[static_cast<size_t>(row)];
  }
};

/// A row for each of so many sequences.
RowPlaces one_row_each(Arena& memory, int64_t sequences);

/// A value at a site.
struct SiteValue {
  Var value;
  int blocks = 1;  // heads whose columns lie side by side
  RowPlaces rows = {};
  /// Of scores and weights, [Nq]: how many keys a row's sequence has; columns behind them are 0.
  std::span<const int32_t> keys = {};
  /// Of scores and weights: which keys a row may see. The mask's sequences have the rows query_offsets[s] ...
  /// query_offsets[s + 1] - 1: in cached decoding each hypothesis is one.
  Mask mask = {};
  std::span<const int32_t> query_offsets = {};

  /// Of scores and weights: calls use(j) for each key j of its sequence that a row may see, in rising order.
  template <class Use>
  void for_visible_keys(int32_t row, const Use& use) const {
    const auto next = std::upper_bound(query_offsets.begin(), query_offsets.end(), row);
    const int64_t i = row - *(next - 1), queries = *next - *(next - 1),
                  of_row = keys[static_cast<size_t>(row)];
    const Mask::Range range = mask.visible(i, queries, of_row);
    for (int64_t j = range.begin; j < range.end; ++j) {
      if (mask.kind() != Mask::Kind::kDense || mask.allows(row, i, j, queries, of_row)) use(j);
    }
  }
};

/// A site of a model: its name, how many blocks of columns it has (heads, or 1), and its columns.
struct SiteShape {
  std::string name;
  int blocks = 1;
  int64_t columns = 0;  // 0: as many as the longest sequence has keys
  SiteRows rows = SiteRows::kSource;

  static SiteShape of(const Site& site, int64_t columns, int blocks = 1) {
    return {site.name(), blocks, columns, rows_of(site)};
  }
};

/// Who is called at sites. Where several threads run batches, all of them call it.
class Sites {
 public:
  virtual ~Sites() = default;
  /// Called before at(): what costs more is made only when it is wanted.
  virtual bool wants(const Site& site) const = 0;
  /// Returns what the model goes on with, of the same shape: the value itself, or another on the same tape. The value may
  /// be read until its layer ends; on a tape that records, until the tape is cleared.
  virtual Var at(Tape& tape, const Site& site, const SiteValue& value) = 0;

  // What it asks for, of which a model checks that it has such (Model::check).
  /// Names of sites, or patterns.
  virtual std::vector<std::string> sites_asked() const { return {}; }
  virtual std::vector<HeadPattern> heads_asked() const { return {}; }
  /// Whether it may give back other values than those that it is shown.
  virtual bool changes() const { return false; }
  /// Throws UsageError or ShapeError when a site of the model does not allow what it asks.
  virtual void check(const SiteShape& /*site*/) const {}
  /// Throws UsageError when what it asks of a head, one of the model, contradicts itself.
  virtual void check(const HeadName& /*head*/) const {}
};

/// Calls one, and then another with what the first made of the value.
class SitesInTurn final : public Sites {
 public:
  /// first: may be null.
  SitesInTurn(Sites* first, Sites& then) : first_(first), then_(then) {}
  bool wants(const Site& site) const override {
    return then_.wants(site) || (first_ != nullptr && first_->wants(site));
  }
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;
  std::vector<std::string> sites_asked() const override;
  std::vector<HeadPattern> heads_asked() const override;
  bool changes() const override { return then_.changes() || (first_ != nullptr && first_->changes()); }
  void check(const SiteShape& site) const override;
  void check(const HeadName& head) const override;

 private:
  Sites* first_;
  Sites& then_;
};

/// Called for every site of a model, in the order of a forward pass.
using SiteVisitor = std::function<void(const SiteShape& site)>;

}  // namespace mh
