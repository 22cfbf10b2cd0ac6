// Tokens to rows: dropout(sqrt(d_model) * E[token] + what the position adds)
// (Vaswani et al. 2017, 3.4 and 3.5)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/autograd/vocabulary.h"
#include "multihead/nn/context.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/position_table.h"

namespace mh {

struct EmbeddingConfig {
  int64_t vocabulary = 0;
  int64_t d_model = 512;
  bool scaled = true;  // by sqrt(d_model)
};

class Embedding {
 public:
  explicit Embedding(const EmbeddingConfig& config);

  Parameter& table() { return table_; }
  const Parameter& table() const { return table_; }
  /// [N, d_model]; a row's position is its place in its sequence. Throws UsageError on a sequence that is too
  /// long.
  Var forward(Context& context, const Sequences& rows, const PositionTable& positions,
              const Dropout& dropout) const;
  /// [R, d_model]; every token stands at `position`.
  Var at(Context& context, std::span<const int32_t> ids, int32_t position,
         const PositionTable& positions) const;

 private:
  Var look_up(Context& context, std::span<const int32_t> ids, const PositionTable& positions,
              std::span<const int32_t> rows_of_positions, const Dropout& dropout) const;

  float scale_;
  Parameter table_;  // [V, d_model]
};

}  // namespace mh
