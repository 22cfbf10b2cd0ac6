// Disentangled attention (He et al. 2021, equation 4): DisentangledOptions in positions.h has the formula. Only the
// rows of R that the distances of the longest sequence reach are used. Where parameters do not train, what depends on them
// alone, k^r and q^r, is computed once.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "multihead/autograd/affine.h"
#include "multihead/autograd/made_once.h"
#include "multihead/autograd/products_by_head.h"
#include "multihead/autograd/vocabulary.h"
#include "multihead/base/error.h"
#include "multihead/nn/attention_positions.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/norm_layer.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

/// What all layers share: R, and its norm.
struct DistanceVectors {
  DistanceVectors(const DisentangledOptions& options, int d_model, float epsilon)
      : vectors(2 * options.span, d_model) {
    if (options.normed) norm.emplace(NormConfig{.epsilon = epsilon}, d_model);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) {
    visitor(name + ".distance_vectors", vectors);
    if (norm) norm->visit(name + ".distance_norm", visitor);
  }

  Parameter vectors;  // [2 span, d_model]
  std::optional<NormLayer> norm;
};

/// x W + b for distances.
struct DistanceProjection {
  DistanceProjection(int d_model, int64_t columns) : w(d_model, columns), b(1, columns), affine({&w}, {&b}) {}
  Parameter w, b;
  Affine affine;
};

class DisentangledPositions final : public AttentionPositions {
 public:
  DisentangledPositions(const DisentangledOptions& options, const HeadShape& shape, int d_model,
                        float epsilon)
      : options_(options),
        shape_(shape),
        table_(std::make_shared<DistanceVectors>(options, d_model, epsilon)) {
    if (options.shared_projections) return;
    const int64_t columns = int64_t{shape.heads} * shape.d_key;
    if (options.content_to_position) keys_ = std::make_unique<DistanceProjection>(d_model, columns);
    if (options.position_to_content) queries_ = std::make_unique<DistanceProjection>(d_model, columns);
  }

  LearnedInputs bias(Context& context, const ScoredHeads& scored, AttentionBias& fixed) const override {
    if (!scored.k) throw UsageError("disentangled positions need keys of whole sequences, in float32");
    Tape& tape = context.tape;
    int longest = 1;
    for (const auto& offsets : {scored.query_offsets, scored.key_offsets}) {
      for (size_t s = 0; s + 1 < offsets.size(); ++s)
        longest = std::max(longest, offsets[s + 1] - offsets[s]);
    }
    const int first = disentangled_column(1 - longest, options_),
              last = disentangled_column(longest - 1, options_);
    const std::span<int32_t> columns = tape.arena().array<int32_t>(2 * int64_t{longest} - 1);
    for (int distance = 1 - longest; distance < longest; ++distance)  // the kernel's, j - i
      columns[static_cast<size_t>(distance + longest - 1)] = disentangled_column(-distance, options_) - first;
    fixed.vector_clip = longest - 1;
    fixed.vector_columns = last - first + 1;
    fixed.vector_buckets = columns;

    const Projected vectors = projected(context, scored.heads, first, last + 1);
    LearnedInputs bias;
    if (options_.content_to_position)
      bias.by_query = products_by_head(tape, scored.q, vectors.keys, shape_.heads, shape_.scale);
    if (options_.position_to_content)
      bias.by_key = products_by_head(tape, scored.k, vectors.queries, shape_.heads, shape_.scale);
    return bias;
  }

  bool share(const AttentionPositions& other) override {
    table_ = static_cast<const DisentangledPositions&>(other).table_;
    owns_table_ = false;
    return true;
  }
  void initialise(Random& random) override {
    if (owns_table_) fill_normal(table_->vectors, random, 0.02);  // as transformers starts them
    for (DistanceProjection* own : {keys_.get(), queries_.get()}) {
      if (own != nullptr) fill_xavier(own->w, random, own->w.value.rows(), own->w.value.cols());
    }
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    if (owns_table_) table_->visit(name, visitor);
    const auto visit_own = [&](const char* letter, DistanceProjection* own) {
      if (own == nullptr) return;
      visitor(name + ".distance_w_" + letter, own->w);
      visitor(name + ".distance_b_" + letter, own->b);
    };
    visit_own("k", keys_.get());
    visit_own("q", queries_.get());
  }
  void visit_shared(const std::string& name, const ParameterVisitor& visitor) const override {
    if (!owns_table_) table_->visit(name, visitor);
  }

 private:
  /// k^r and q^r; null where they are not asked for.
  struct Projected {
    Var keys, queries;
  };
  struct Kept {
    Tensor keys, queries;
  };

  /// Of rows [begin, end) of R.
  Projected projected(Context& context, const Heads& heads, int begin, int end) const {
    if (context.tape.trains()) return project(context, heads, begin, end);
    const Kept& kept = kept_.get(versions(heads), [&](Kept& made) {
      Tape own;
      Context alone{.tape = own};
      const Projected all = project(alone, heads, 0, 2 * options_.span);
      const auto copy = [](Var from) { return from ? copied(from.value()) : Tensor(); };
      made = {copy(all.keys), copy(all.queries)};
    });
    const auto some_rows = [&](const Tensor& of) {
      if (of.size() == 0) return Var();
      // A constant that nobody writes to.
      const ConstMatrixView some = of.view().rows_between(begin, end);
      return context.tape.constant({const_cast<float*>(some.data), some.rows, some.cols, some.stride});
    };
    return {some_rows(kept.keys), some_rows(kept.queries)};
  }
  Projected project(Context& context, const Heads& heads, int begin, int end) const {
    Tape& tape = context.tape;
    const std::span<int32_t> rows = tape.arena().array<int32_t>(end - begin);
    std::iota(rows.begin(), rows.end(), begin);
    Var r = embed(tape, table_->vectors, rows, {});
    if (table_->norm) r = table_->norm->forward(context, r);
    if (options_.shared_projections && tape.trains()) {
      return {.keys = options_.content_to_position ? heads.keys(context, r) : Var(),
              .queries = options_.position_to_content ? heads.queries(context, r) : Var()};
    }
    if (options_.shared_projections) {
      const ProjectedHeads all = heads.project(context, r);  // for which W^Q and W^K are packed already
      return {.keys = options_.content_to_position ? all.k : Var(),
              .queries = options_.position_to_content ? all.q : Var()};
    }
    return {.keys = keys_ ? affine(tape, r, keys_->affine) : Var(),
            .queries = queries_ ? affine(tape, r, queries_->affine) : Var()};
  }
  /// Changes with every parameter that k^r and q^r are made of.
  uint64_t versions(const Heads& heads) const {
    uint64_t sum = 0;
    const ParameterVisitor add = [&](const std::string&, const Parameter& one) { sum += one.version; };
    table_->visit("", add);
    // Heads walk over their parameters in one way only; here they are read.
    if (options_.shared_projections) const_cast<Heads&>(heads).visit("", add);
    for (const DistanceProjection* own : {keys_.get(), queries_.get()}) {
      if (own != nullptr) sum += own->w.version + own->b.version;
    }
    return sum;
  }

  DisentangledOptions options_;
  HeadShape shape_;
  std::shared_ptr<DistanceVectors> table_;
  bool owns_table_ = true;
  std::unique_ptr<DistanceProjection> keys_, queries_;  // null: those of the layer are used, or nothing
  MadeOnce<Kept> kept_;
};

}  // namespace

std::unique_ptr<AttentionPositions> make_disentangled_positions(const DisentangledOptions& options,
                                                                const HeadShape& shape, int d_model,
                                                                float norm_epsilon) {
  return std::make_unique<DisentangledPositions>(options, shape, d_model, norm_epsilon);
}

}  // namespace mh
