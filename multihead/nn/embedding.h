// Tokens to rows:  dropout(Norm(scale * E[token] + what the position adds + T[kind of token]))
// (Vaswani et al. 2017, 3.4 and 3.5; kinds of token and the norm: Devlin et al. 2019). Scale, kinds and norm
// are optional.
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
  int64_t token_types = 0;                        // kinds of token (BERT's two sentences); 0: not told apart
  std::optional<NormConfig> norm = std::nullopt;  // of the sum
};

/// Where tokens stand, and of which kind they are.
struct TokenPlaces {
  std::span<const int32_t> positions;   // [N]
  std::span<const int32_t> types = {};  // [N]; empty: all of kind 0
};

class Embedding {
 public:
  explicit Embedding(const EmbeddingConfig& config);

  Parameter& table() { return table_; }
  const Parameter& table() const { return table_; }
  /// [N, d_model]; a row's position is its place in its sequence. Throws UsageError on a sequence that is too
  /// long and on a token that is not in the vocabulary.
  Var forward(Context& context, const Sequences& rows, const PositionTable& positions, const Dropout& dropout,
              std::span<const int32_t> types = {}) const;
  /// The same for tokens that stand anywhere: [N, d_model].
  Var at(Context& context, std::span<const int32_t> ids, const TokenPlaces& places,
         const PositionTable& positions, const Dropout& dropout = {}) const;

  /// Kinds and norm, "NAME.types" and "NAME.norm.gain"; the table is its owner's to name.
  void visit(const std::string& name, const ParameterVisitor& visitor);
  /// Of the kinds of token.
  void initialise_types(Random& random, double deviation);

 private:
  float scale_;
  Parameter table_;  // [V, d_model]
  Parameter types_;  // [kinds, d_model]
  std::unique_ptr<NormLayer> norm_;
};

}  // namespace mh
