// Embedding: token ids [N] to rows [N, d_model],
//
//   dropout(Norm(scale * E[token] + position vector + T[token type]))
//
// (Vaswani et al. 2017, 3.4 and 3.5; token types and the norm: Devlin et al. 2019). Scale, token types and
// norm are optional.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/autograd/vocabulary.h"
#include "multihead/nn/context.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/norm_layer.h"
#include "multihead/nn/position_table.h"

namespace mh {

struct EmbeddingConfig {
  int64_t vocabulary = 0;
  int64_t d_model = 512;
  bool scaled = true;                             // by sqrt(d_model)
  int64_t token_types = 0;                        // token types (BERT's two sentences); 0: none
  std::optional<NormConfig> norm = std::nullopt;  // of the sum; unset: none
  /// A token with this id takes the row before that of position 0, and those behind it count on without it: RoBERTa's
  /// padding, also where a text has it. unset: every token counts.
  std::optional<int32_t> uncounted = std::nullopt;
};

/// The positions and types of tokens.
struct TokenPlaces {
  std::span<const int32_t> positions;   // [N]
  std::span<const int32_t> types = {};  // [N]; empty: all of type 0
};

class Embedding {
 public:
  /// shared: the table of another embedding, which outlives this; null: it has one of its own.
  explicit Embedding(const EmbeddingConfig& config, Parameter* shared = nullptr);

  Parameter& table() { return *table_; }
  const Parameter& table() const { return *table_; }
  /// [N, d_model]; a row's position is its place in its sequence, without the tokens that do not count. Throws UsageError on a sequence that is too
  /// long and on a token or a type that is not there.
  Var forward(Context& context, const Sequences& rows, const PositionTable& positions,
              const Dropout& dropout) const;
  /// The same for tokens at given positions, which those that do not count ignore: [N, d_model].
  Var at(Context& context, std::span<const int32_t> ids, const TokenPlaces& places,
         const PositionTable& positions, const Dropout& dropout = {}) const;

  /// Visits types and norm, "NAME.types" and "NAME.norm.gain". The table is visited by the model, since it
  /// may be shared.
  void visit(const std::string& name, const ParameterVisitor& visitor);
  /// Starts the vectors of the token types with normal numbers.
  void initialise_types(Random& random, double deviation);

 private:
  float scale_;
  int32_t uncounted_;                     // -1: none
  std::unique_ptr<Parameter> own_table_;  // null: shared
  Parameter* table_;                      // [V, d_model]
  Parameter types_;                       // [types, d_model]
  std::unique_ptr<NormLayer> norm_;
};

}  // namespace mh
