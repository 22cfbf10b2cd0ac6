// The cost ledger: counts what one attention costs, from its description alone: parameters, floating-point
// operations, exponentials and bytes, part by part. It counts the forward formula: each product, sum and
// exponential in it once. (A kernel may do a few more where its tiles end.)
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
// A soft cap of the scores is a part of its own, "soft cap", between scores and softmax: 2 P h other operations (by and
// times the cap) and P h exponentials, one for each tanh.
//
// The 5 operations of the softmax are scale, maximum, difference, sum and division. A bias adds, for each
// column that a projection writes, one parameter and one operation a row. The costs of other geometries
// stand at the top of their files (geometries/).
//
// Positions add to `scores`: rotary 3 other operations for each number of queries and keys that turns; alibi 2 P h; t5
// 32 h parameters (h for each bucket) and P h operations; shaw 33 k parameters, Tq h k 33 multiply-adds and Tq h 33 + P h
// operations; disentangled, with R [2s, d], its C rows that the distances of Tk tokens reach, and n of its two products:
// 2s d parameters (and 2 d of its norm) of one layer, n C d h k multiply-adds for its projections (with parameters of their
// own n (d + 1) h k) and (Tq or Tk) h C k for each product, 7 C d, n C h k, (Tq or Tk) h C and n P h operations.
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

/// Which code computes softmax(scale Q K^T) V.
enum class AttentionPath {
  kFused,     // the kernel (kernels/attention.h), which writes no matrix of Tq x Tk
  kComposed,  // the formula (nn/attention.h), which writes three such matrices for each head (scores, scaled,
              // weights) and keeps one. Talking heads (autograd/attention_maps.h) write and keep four, before
              // and after each mixing
};
/// Returns kFused, unless the geometry needs kComposed, as talking heads do.
AttentionPath attention_path(const HeadGeometry& geometry);

struct LedgerOptions {
  enum class Keys {
    kByLength,  // of the queries' rows when there are as many keys as queries, else of a memory
    kMemory,    // of other rows
  };
  Keys keys = Keys::kByLength;
  int d_out = 0;                           // of W^O; 0: d_model
  Mask mask = Mask::none();                // any but a dense one
  std::optional<AttentionPath> path = {};  // unset: attention_path()
  Positions positions = Positions::kNone;  // of self-attention
  int rotated = 0;                         // of rotary positions: numbers of a head that turn; 0: all
  int buckets = T5Buckets().count;         // columns of T5's table; 0: that of another layer is used
  DisentangledOptions disentangled = {};
  bool vectors_of_another = false;  // of disentangled positions: R and its norm are those of another layer
};

struct Ledger {
  HeadGeometry geometry;  // completed()
  AttentionPath path = AttentionPath::kFused;
  std::vector<LedgerPart> parts;  // queries, keys, values, scores, [soft cap,] softmax, average, output

  /// Returns a part by name. Throws UsageError listing the parts.
  const LedgerPart& part(std::string_view name) const;
  LedgerPart total() const;
};

/// Counts one layer on one sequence. Throws UsageError on a geometry that cannot be built or that this path
/// cannot compute, and on counts beyond 2^63.
Ledger ledger(const HeadGeometry& geometry, int d_model, int64_t tokens_q, int64_t tokens_k,
              const LedgerOptions& options = {});

}  // namespace mh
