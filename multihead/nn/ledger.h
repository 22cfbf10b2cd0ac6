// What a layer of attention costs, counted from its description: parameters, floating-point operations,
// exponentials and bytes, part by part. The counts are of the formula, forward: each product, sum and
// exponential that it names, each once. (A kernel may do a few more where its tiles end.)
//
//   Tq queries, Tk keys, P pairs of them that the mask allows, d = d_model, o = d_out, h heads, g key heads,
//   u value heads, k = d_key, v = d_value; of canonical heads:
//
//   part       parameters   multiply-adds   other operations
//   queries    d h k        Tq d h k
//   keys       d g k        Tk d g k
//   values     d u v        Tk d u v
//   scores     -            P h k
//   softmax    -            -               5 P h, and P h exponentials
//   average    -            P h v
//   output     h v o        Tq h v o
//
// Those of the softmax are scale, maximum, difference, sum and division.
// Biases add one parameter and, a row, one operation for each column that a projection writes. What other
// geometries cost instead or besides stands at the head of their files (geometries/).
//
// Positions, in scores: rotary 3 others for each number of queries and keys; alibi 2 P h; t5 32 h parameters,
// P h others; shaw 33 k parameters, Tq h k 33 multiply-adds, Tq h 33 + P h others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/kernels/mask.h"
#include "multihead/nn/ledger_part.h"
#include "multihead/nn/positions.h"

namespace mh {

/// What computes softmax(scale Q K^T) V.
enum class AttentionPath {
  kFused,     // the kernel (kernels/attention.h): no matrix of Tq x Tk is written
  kComposed,  // the formula (nn/attention.h): three of them a head (scores, scaled, weights), one kept. With
              // talking weights (autograd/attention_maps.h) four, before and after each mixing, all kept
};
/// The fused kernel, wherever it can: not with talking weights.
AttentionPath attention_path(const HeadGeometry& geometry);

struct LedgerOptions {
  enum class Keys {
    kByLength,  // of the queries' own rows when there are as many of them, else of a memory
    kMemory,    // of other rows
  };
  Keys keys = Keys::kByLength;
  int d_out = 0;                           // of W^O; 0: d_model
  Mask mask = Mask::none();                // not a dense one
  std::optional<AttentionPath> path = {};  // unset: attention_path()
  Positions positions = Positions::kNone;  // of self-attention
};

struct Ledger {
  HeadGeometry geometry;  // completed()
  AttentionPath path = AttentionPath::kFused;
  std::vector<LedgerPart> parts;  // queries, keys, values, scores, softmax, average, output

  /// Throws UsageError naming the parts there are.
  const LedgerPart& part(std::string_view name) const;
  LedgerPart total() const;
};

/// One layer on one sequence. Throws UsageError on a geometry that cannot be, or not by that path, and on
/// counts beyond 2^63.
Ledger ledger(const HeadGeometry& geometry, int d_model, int64_t tokens_q, int64_t tokens_k,
              const LedgerOptions& options = {});

}  // namespace mh
