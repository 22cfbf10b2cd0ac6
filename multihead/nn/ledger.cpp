#include "multihead/nn/ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <initializer_list>

#include "multihead/base/error.h"

namespace mh {
namespace {

constexpr int64_t kFloatBytes = 4;

[[noreturn]] void throw_too_large() {
  throw UsageError("the ledger's counts go beyond 2^63; give fewer tokens or smaller sizes");
}

/// The product. Throws UsageError beyond 2^63.
int64_t times(std::initializer_list<int64_t> factors) {
  int64_t all = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(all, factor, &all)) throw_too_large();
  }
  return all;
}

int64_t added(int64_t a, int64_t b) {
  int64_t all = 0;
  if (__builtin_add_overflow(a, b, &all)) throw_too_large();
  return all;
}

template <class Join>
void for_fields(LedgerPart& part, const LedgerPart& other, const Join& join) {
  for (const auto field : {&LedgerPart::parameters, &LedgerPart::multiply_adds, &LedgerPart::other_flops,
                           &LedgerPart::exponentials, &LedgerPart::read_bytes, &LedgerPart::written_bytes,
                           &LedgerPart::kept_bytes}) {
    part.*field = join(part.*field, other.*field);
  }
}

/// What one layer is asked to do.
class LayerLedger {
 public:
  LayerLedger(const HeadGeometry& g, int d_model, int64_t tokens_q, int64_t tokens_k,
              const LedgerOptions& options, AttentionPath path)
      : g_(g),
        d_(d_model),
        d_out_(output_size(g, d_model, options.d_out, "ledger")),
        tokens_q_(tokens_q),
        tokens_k_(tokens_k),
        own_rows_(options.keys == LedgerOptions::Keys::kByLength && tokens_q == tokens_k),
        biased_(g.biases == Biases::kAll),
        positions_(options.positions),
        path_(path) {
    if (options.mask.kind() == Mask::Kind::kDense)
      throw UsageError("the ledger counts no dense masks; give none, causal or a window");
    for (int64_t i = 0; i < tokens_q; ++i) {
      const Mask::Range range = options.mask.visible(i, tokens_q, tokens_k);
      pairs_ = added(pairs_, range.end - range.begin);
    }
  }

  std::vector<LedgerPart> parts() const {
    return {queries(), keys(), values(), scores(), softmax(), average(), output()};
  }

 private:
  bool merged() const { return g_.scores == Scores::kMerged; }
  bool collaborative() const { return g_.scores == Scores::kCollaborative; }
  /// Numbers that a score sums over, and how many different keys a row has.
  int64_t score_size() const { return key_size(g_, d_); }
  int64_t key_heads() const { return merged() || collaborative() ? 1 : maps_per_head(g_) * g_.key_heads; }
  /// Softmaxes of a row.
  int64_t softmaxes() const { return int64_t{maps_per_head(g_)} * g_.heads; }
  bool normed() const { return g_.query_key_norm == QueryKeyNorm::kL2; }
  bool talking() const { return g_.weights == HeadWeights::kTalking; }

  /// Reads, and writes what stays until the backward pass.
  static void moves(LedgerPart& part, int64_t read, int64_t written) {
    part.read_bytes = added(part.read_bytes, times({kFloatBytes, read}));
    part.written_bytes = added(part.written_bytes, times({kFloatBytes, written}));
    part.kept_bytes = added(part.kept_bytes, times({kFloatBytes, written}));
  }
  /// x W: [tokens, inputs] -> [tokens, outputs].
  void affine(LedgerPart& part, int64_t tokens, int64_t inputs, int64_t outputs, bool biased) const {
    part.parameters = added(part.parameters, added(times({inputs, outputs}), biased ? outputs : 0));
    part.multiply_adds = added(part.multiply_adds, times({tokens, inputs, outputs}));
    if (biased) part.other_flops = added(part.other_flops, times({tokens, outputs}));
    moves(part, times({tokens, inputs}), times({tokens, outputs}));
  }
  /// Each head its columns of the row: [tokens, d] -> [tokens, h * size].
  void segments(LedgerPart& part, int64_t tokens, int64_t size) const {
    const HeadColumns columns =
        g_.input.kind == HeadInput::Kind::kColumns ? g_.input.columns : slice_columns(g_.heads, d_);
    int64_t all = 0;
    bool in_place = true;  // the row itself, in order: nothing to gather
    for (const auto& head : columns) {
      for (const int32_t column : head) in_place = in_place && column == all++;
      if (!in_place) break;
    }
    all = 0;
    for (const auto& head : columns) all += static_cast<int64_t>(head.size());
    if (!in_place || all != d_) moves(part, times({tokens, all}), times({tokens, all}));
    const int64_t rows = g_.input.one_for_all ? static_cast<int64_t>(columns[0].size()) : all;
    const int64_t outputs = times({g_.heads, size});
    part.parameters = added(part.parameters, added(times({rows, size}), biased_ ? outputs : 0));
    part.multiply_adds = added(part.multiply_adds, times({tokens, all, size}));
    if (biased_) part.other_flops = added(part.other_flops, times({tokens, outputs}));
    moves(part, times({tokens, all}), times({tokens, outputs}));
  }
  LedgerPart projection(const char* name, int64_t tokens, int64_t heads, int64_t size) const {
    LedgerPart part{.name = name};
    if (g_.input.kind == HeadInput::Kind::kProjectedSlices || g_.scores == Scores::kDoubled)
      affine(part, tokens, d_, d_, false);
    if (g_.input.kind != HeadInput::Kind::kWholeRow) {
      segments(part, tokens, size);
    } else {
      affine(part, tokens, d_, times({heads, size}), biased_);
    }
    return part;
  }

  /// Each head of each row to length 1: square, sum and scale its numbers; a root and a division.
  LedgerPart with_norm(LedgerPart part, int64_t tokens, int64_t heads) const {
    if (!normed()) return part;
    const int64_t numbers = times({tokens, heads, score_size()});
    part.other_flops = added(part.other_flops, added(times({3, numbers}), times({2, tokens, heads})));
    moves(part, numbers, numbers);
    return part;
  }
  LedgerPart queries() const {
    LedgerPart part = with_norm(projected_queries(), tokens_q_, softmaxes());
    part.parameters += normed() ? 1 : 0;
    return part;
  }
  LedgerPart keys() const { return with_norm(projected_keys(), tokens_k_, key_heads()); }

  LedgerPart projected_queries() const {
    if (merged()) return projection("queries", tokens_q_, g_.heads, d_);
    if (!collaborative()) return projection("queries", tokens_q_, softmaxes(), g_.d_key);
    LedgerPart part = projection("queries", tokens_q_, 1, g_.shared_size);
    const int64_t mixed = times({tokens_q_, g_.heads, g_.shared_size});
    part.parameters = added(part.parameters, times({g_.heads, g_.shared_size}));
    part.other_flops = added(part.other_flops, mixed);
    moves(part, times({tokens_q_, g_.shared_size}), mixed);
    return part;
  }
  LedgerPart projected_keys() const {
    if (merged()) return {.name = "keys"};
    if (collaborative()) return projection("keys", tokens_k_, 1, g_.shared_size);
    if (g_.scores != Scores::kTied) return projection("keys", tokens_k_, key_heads(), g_.d_key);
    if (own_rows_) return {.name = "keys"};
    LedgerPart part = projection("keys", tokens_k_, softmaxes(), g_.d_key);
    part.parameters = 0;  // the queries'
    return part;
  }
  LedgerPart values() const { return projection("values", tokens_k_, g_.value_heads, g_.d_value); }

  /// Numbers in the matrices of Tq x Tk, one a softmax.
  int64_t matrices() const { return times({softmaxes(), tokens_q_, tokens_k_}); }
  /// The composed path multiplies what the mask hides, too.
  int64_t products() const {
    return path_ == AttentionPath::kComposed ? matrices() : times({softmaxes(), pairs_});
  }
  /// All matrices of weights or scores mixed by one [heads, heads].
  void mixing(LedgerPart& part) const {
    part.parameters = added(part.parameters, times({g_.heads, g_.heads}));
    part.multiply_adds = added(part.multiply_adds, times({matrices(), g_.heads}));
    moves(part, matrices(), matrices());
  }
  void order(LedgerPart& part) const {
    constexpr int64_t kVectors = 2 * kShawClip + 1;
    const int64_t all = times({softmaxes(), pairs_}), queries = times({tokens_q_, softmaxes()});
    int64_t others = 0;
    if (positions_ == Positions::kRotary) {
      const int64_t numbers = times({added(queries, times({tokens_k_, key_heads()})), score_size()});
      others = times({3, numbers});
      moves(part, numbers, numbers);
    } else if (positions_ == Positions::kAlibi) {
      others = times({2, all});
    } else if (positions_ == Positions::kT5) {
      others = all;
      part.parameters = added(part.parameters, softmaxes() * kT5Buckets);
    } else if (positions_ == Positions::kShaw) {
      const int64_t products = times({queries, kVectors});
      others = added(products, all);
      part.parameters = added(part.parameters, times({score_size(), kVectors}));
      part.multiply_adds = added(part.multiply_adds, times({products, score_size()}));
      moves(part, added(times({queries, score_size()}), products), times({2, products}));
    }
    part.other_flops = added(part.other_flops, others);
  }

  LedgerPart scores() const {
    LedgerPart part{.name = "scores"};
    part.multiply_adds = times({products(), score_size()});
    const int64_t read =
        added(times({tokens_q_, softmaxes(), score_size()}), times({tokens_k_, key_heads(), score_size()}));
    part.read_bytes = times({kFloatBytes, read});
    if (path_ == AttentionPath::kComposed) part.written_bytes = times({kFloatBytes, matrices()});
    if (talking()) {
      part.kept_bytes = part.written_bytes;
      mixing(part);
    }
    order(part);
    return part;
  }
  LedgerPart softmax() const {
    LedgerPart part{.name = "softmax"};
    const int64_t weights = times({softmaxes(), pairs_});
    part.exponentials = weights;
    part.other_flops = added(times({4, weights}), normed() ? 0 : products());  // products(): the scaling
    if (path_ == AttentionPath::kFused) {
      moves(part, 0, times({tokens_q_, softmaxes()}));  // log sum exp of each row
    } else if (talking()) {
      moves(part, matrices(), matrices());  // the scores are scaled as they are made
    } else {
      part.read_bytes = times({2, kFloatBytes, matrices()});
      part.written_bytes = times({2, kFloatBytes, matrices()});  // scaled scores, and weights
      part.kept_bytes = times({kFloatBytes, matrices()});
    }
    return part;
  }
  LedgerPart average() const {
    LedgerPart part{.name = "average"};
    if (talking()) mixing(part);
    part.multiply_adds = added(part.multiply_adds, times({products(), g_.d_value}));
    int64_t read = times({tokens_k_, g_.value_heads, g_.d_value});
    if (path_ == AttentionPath::kComposed) read = added(read, matrices());
    moves(part, read, times({tokens_q_, softmaxes(), g_.d_value}));
    if (g_.weights == HeadWeights::kDifferential) difference(part);
    return part;
  }
  /// Of each pair of averages, and its norm: lambda times, minus, square, sum, gain and factor of each
  /// number; mean, epsilon, root and division.
  void difference(LedgerPart& part) const {
    const int64_t rows = times({tokens_q_, g_.heads}), numbers = times({rows, g_.d_value});
    part.parameters = added(part.parameters, added(times({4, g_.d_key}), g_.d_value));
    part.multiply_adds = added(part.multiply_adds, times({2, g_.d_key}));
    part.exponentials = added(part.exponentials, 2);
    part.other_flops = added(part.other_flops, added(added(times({6, numbers}), times({4, rows})), 2));
    moves(part, times({2, numbers}), numbers);
  }
  LedgerPart output() const {
    LedgerPart part{.name = "output"};
    if (g_.output == HeadOutput::kConcatenation) return part;
    affine(part, tokens_q_, times({g_.heads, g_.d_value}), d_out_, biased_);
    part.kept_bytes = 0;  // the residual sum takes it in
    return part;
  }

  const HeadGeometry& g_;
  int d_, d_out_;
  int64_t tokens_q_, tokens_k_, pairs_ = 0;
  bool own_rows_, biased_;
  Positions positions_;
  AttentionPath path_;
};

}  // namespace

LedgerPart& LedgerPart::operator+=(const LedgerPart& other) {
  for_fields(*this, other, added);
  return *this;
}

LedgerPart LedgerPart::repeated(int64_t count) const {
  LedgerPart part{.name = name};
  for_fields(part, *this, [&](int64_t, int64_t value) { return times({count, value}); });
  return part;
}

AttentionPath attention_path(const HeadGeometry& geometry) {
  return geometry.weights == HeadWeights::kTalking ? AttentionPath::kComposed : AttentionPath::kFused;
}

const LedgerPart& Ledger::part(std::string_view name) const {
  std::vector<std::string> names;
  for (const LedgerPart& part : parts) {
    if (part.name == name) return part;
    names.push_back(part.name);
  }
  throw UsageError(fmt::format("the ledger has no part '{}'; it has {}", name, fmt::join(names, ", ")));
}

LedgerPart Ledger::total() const {
  LedgerPart all{.name = "total"};
  for (const LedgerPart& part : parts) all += part;
  return all;
}

Ledger ledger(const HeadGeometry& geometry, int d_model, int64_t tokens_q, int64_t tokens_k,
              const LedgerOptions& options) {
  MH_ASSERT(tokens_q >= 0 && tokens_k >= 0);
  Ledger found{.geometry = completed(geometry, d_model, "ledger"), .parts = {}};
  found.path = options.path.value_or(attention_path(found.geometry));
  if (found.path == AttentionPath::kFused && attention_path(found.geometry) != AttentionPath::kFused) {
    throw UsageError("the fused kernel cannot compute talking heads; take the composed path");
  }
  if (const auto wrong = problems(options.positions, found.geometry, d_model); !wrong.empty())
    throw UsageError(fmt::format("ledger: {}", wrong[0]));
  found.parts = LayerLedger(found.geometry, d_model, tokens_q, tokens_k, options, found.path).parts();
  return found;
}

}  // namespace mh
