#include "multihead/nn/ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/query_key_scheme.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

/// What one layer is asked to do.
class LayerLedger {
 public:
  LayerLedger(const HeadGeometry& g, int d_model, int64_t tokens_q, int64_t tokens_k,
              const LedgerOptions& options, AttentionPath path)
      : g_(g),
        kernel_(kernel_geometry(g)),
        shape_(scheme_of(g).shape(kernel_, d_model)),
        weights_(weight_scheme_of(g)),
        norm_(query_key_scheme_of(g)),
        d_out_(output_size(g, d_model, options.d_out, "ledger")),
        rows_{.d_model = d_model,
              .queries = tokens_q,
              .keys = tokens_k,
              .own_rows = options.keys == LedgerOptions::Keys::kByLength && tokens_q == tokens_k},
        options_(options),
        path_(path) {
    if (options.mask.kind() == Mask::Kind::kDense)
      throw UsageError("the ledger counts no dense masks; give none, causal or a window");
    for (int64_t i = 0; i < tokens_q; ++i) {
      const Mask::Range range = options.mask.visible(i, tokens_q, tokens_k);
      pairs_ = count_sum(pairs_, range.end - range.begin);
    }
  }

  std::vector<LedgerPart> parts() const {
    std::vector<LedgerPart> parts = {projection("queries", HeadPart::kQueries, rows_.queries, softmaxes()),
                                     projection("keys", HeadPart::kKeys, rows_.keys, key_heads()),
                                     projection("values", HeadPart::kValues, rows_.keys, shape_.value_heads),
                                     scores(),
                                     softmax(),
                                     average(),
                                     output()};
    if (g_.soft_cap) parts.insert(parts.begin() + 4, soft_cap());
    return parts;
  }

 private:
  /// Numbers that a score sums over, and how many different keys a row has.
  int64_t score_size() const { return shape_.d_key; }
  int64_t key_heads() const { return shape_.key_heads; }
  /// Softmaxes of a row.
  int64_t softmaxes() const { return shape_.heads; }

  LedgerPart projection(const char* name, HeadPart of, int64_t rows, int64_t heads) const {
    LedgerPart part = scheme_of(g_).cost(kernel_, of, rows_);
    part.name = name;
    if (of != HeadPart::kValues) norm_.add_cost(part, of, rows, heads, score_size());
    return part;
  }

  /// Numbers in the matrices of Tq x Tk, one a softmax.
  int64_t matrices() const { return count_product({softmaxes(), rows_.queries, rows_.keys}); }
  WeighedRows weighed() const { return {.queries = rows_.queries, .maps = matrices()}; }
  /// The composed path multiplies what the mask hides, too.
  int64_t products() const {
    return path_ == AttentionPath::kComposed ? matrices() : count_product({softmaxes(), pairs_});
  }
  void order(LedgerPart& part) const {
    constexpr int64_t kVectors = 2 * kShawClip + 1;
    const int64_t all = count_product({softmaxes(), pairs_}),
                  queries = count_product({rows_.queries, softmaxes()});
    int64_t others = 0;
    if (options_.positions == Positions::kRotary) {
      const int64_t numbers = count_product({count_sum(queries, count_product({rows_.keys, key_heads()})),
                                             options_.rotated > 0 ? options_.rotated : score_size()});
      others = count_product({3, numbers});
      part.add_moves(numbers, numbers);
    } else if (options_.positions == Positions::kAlibi) {
      others = count_product({2, all});
    } else if (options_.positions == Positions::kT5) {
      others = all;
      part.parameters = count_sum(part.parameters, count_product({softmaxes(), options_.buckets}));
    } else if (options_.positions == Positions::kShaw) {
      const int64_t products = count_product({queries, kVectors});
      others = count_sum(products, all);
      part.parameters = count_sum(part.parameters, count_product({score_size(), kVectors}));
      part.multiply_adds = count_sum(part.multiply_adds, count_product({products, score_size()}));
      part.add_moves(count_sum(count_product({queries, score_size()}), products),
                     count_product({2, products}));
    }
    part.other_flops = count_sum(part.other_flops, others);
    if (options_.positions == Positions::kDisentangled && rows_.keys > 0) add_disentangled(part, all);
  }
  void add_disentangled(LedgerPart& part, int64_t pairs) const {
    const DisentangledOptions& of = options_.disentangled;
    const auto farthest = static_cast<int>(std::min<int64_t>(rows_.keys - 1, 1 << 20));
    const int64_t columns = disentangled_column(farthest, of) - disentangled_column(-farthest, of) + 1,
                  width = count_product({softmaxes(), score_size()}), d = rows_.d_model;
    const int64_t numbers = count_product({columns, d});
    LedgerPart vectors{.name = {}};
    if (!options_.vectors_of_another) vectors.parameters = int64_t{2} * of.span * d + (of.normed ? 2 * d : 0);
    vectors.add_moves(numbers, count_sum(numbers, 2 * rows_.keys - 1));  // and the row of each distance
    if (of.normed) {
      vectors.other_flops = count_product({7, numbers});
      vectors.add_moves(numbers, count_sum(numbers, 2 * columns));
    }
    part += vectors;
    const auto add = [&](bool wanted, int64_t rows) {
      if (!wanted) return;
      LedgerPart projection{.name = {}};
      projection.add_affine(columns, d, width, !of.shared_projections || has_bias_of_heads(g_.biases));
      if (of.shared_projections) projection.parameters = 0;
      part += projection;
      const int64_t products = count_product({rows, softmaxes(), columns});
      LedgerPart met{.name = {}};
      met.multiply_adds = count_product({products, score_size()});
      met.other_flops = count_sum(products, pairs);
      met.add_moves(count_product({rows, width}), products);
      part += met;
    };
    add(of.content_to_position, rows_.queries);
    add(of.position_to_content, rows_.keys);
  }

  LedgerPart scores() const {
    LedgerPart part{.name = "scores"};
    part.multiply_adds = count_product({products(), score_size()});
    const int64_t read = count_sum(count_product({rows_.queries, softmaxes(), score_size()}),
                                   count_product({rows_.keys, key_heads(), score_size()}));
    part.read_bytes = count_product({kFloatBytes, read});
    if (path_ == AttentionPath::kComposed) part.written_bytes = count_product({kFloatBytes, matrices()});
    weights_.add_to_scores(part, g_, weighed());
    order(part);
    return part;
  }
  LedgerPart soft_cap() const {
    LedgerPart part{.name = "soft cap"};
    part.exponentials = products();
    part.other_flops = count_product({2, products()});
    if (path_ == AttentionPath::kComposed) part.add_moves(matrices(), matrices());
    return part;
  }
  LedgerPart softmax() const {
    LedgerPart part{.name = "softmax"};
    const int64_t numbers = count_product({softmaxes(), pairs_});
    part.exponentials = numbers;
    const int64_t scaled = norm_.takes_scale() ? 0 : products();
    part.other_flops = count_sum(count_product({4, numbers}), scaled);
    if (path_ == AttentionPath::kFused) {
      part.add_moves(0, count_product({rows_.queries, softmaxes()}));  // log sum exp of each row
    } else {
      weights_.add_softmax_moves(part, matrices());
    }
    return part;
  }
  LedgerPart average() const {
    LedgerPart part{.name = "average"};
    part.multiply_adds = count_product({products(), shape_.d_value});
    int64_t read = count_product({rows_.keys, shape_.value_heads, shape_.d_value});
    if (path_ == AttentionPath::kComposed) read = count_sum(read, matrices());
    part.add_moves(read, count_product({rows_.queries, softmaxes(), shape_.d_value}));
    weights_.add_to_average(part, g_, weighed());
    return part;
  }
  LedgerPart output() const {
    LedgerPart part{.name = "output"};
    if (g_.output == HeadOutput::kConcatenation) return part;
    part.add_affine(rows_.queries, count_product({g_.heads, g_.d_value}), d_out_,
                    has_bias_of_output(g_.biases));
    part.kept_bytes = 0;  // the residual sum takes it in
    return part;
  }

  const HeadGeometry& g_;
  HeadGeometry kernel_;  // its heads are softmaxes
  HeadShape shape_;
  const WeightScheme& weights_;
  const QueryKeyScheme& norm_;
  int d_out_;
  ProjectedRows rows_;
  int64_t pairs_ = 0;
  const LedgerOptions& options_;
  AttentionPath path_;
};

}  // namespace

AttentionPath attention_path(const HeadGeometry& geometry) {
  return weight_scheme_of(geometry).unfused() != nullptr ? AttentionPath::kComposed : AttentionPath::kFused;
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
  if (tokens_q < 0 || tokens_k < 0) throw UsageError("ledger: a sequence has 0 tokens or more");
  Ledger found{.geometry = completed(geometry, d_model, "ledger"), .parts = {}};
  found.path = options.path.value_or(attention_path(found.geometry));
  if (found.path == AttentionPath::kFused && attention_path(found.geometry) != AttentionPath::kFused) {
    throw UsageError(fmt::format("the fused kernel cannot compute {}; take the composed path",
                                 weight_scheme_of(found.geometry).unfused()));
  }
  if (const auto wrong = problems_of(options.positions, found.geometry, d_model); !wrong.empty())
    throw UsageError(fmt::format("ledger: {}", wrong[0]));
  found.parts = LayerLedger(found.geometry, d_model, tokens_q, tokens_k, options, found.path).parts();
  return found;
}

}  // namespace mh
