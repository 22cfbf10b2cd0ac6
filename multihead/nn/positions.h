// How a model knows in which order its tokens stand: numbers added to the embeddings, or something that each
// self-attention does to its queries, keys or scores. Attention to a memory knows no positions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/kernels/rotary.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

enum class Positions {
  kSinusoidal,  // fixed waves, added to the embeddings (Vaswani et al. 2017, section 3.5)
  kLearned,     // a learned vector for each position, added to the embeddings; a table for each side
  kRotary,      // queries and keys turn with their position (Su et al. 2021)
  kAlibi,  // scores lose m_i times the distance, m_i = 2^(-8 i / h) for head i = 1 ... h (Press et al. 2022)
  kT5,     // a learned number for each head and bucket of distances is added to the scores (Raffel et al.
           // 2020); each layer has its own, where T5 has one for all layers of a stack
  kShaw,   // the query meets a learned vector for the distance beside the key (Shaw et al. 2018); one set
           // of vectors a layer for all heads, none for the values, which their table 3 finds unneeded
  kNone,   // no order but what a causal mask gives away
};

inline constexpr EnumNames<Positions> kPositionNames = {{"sinusoidal", Positions::kSinusoidal},
                                                        {"learned", Positions::kLearned},
                                                        {"rotary", Positions::kRotary},
                                                        {"alibi", Positions::kAlibi},
                                                        {"t5", Positions::kT5},
                                                        {"shaw", Positions::kShaw},
                                                        {"none", Positions::kNone}};

/// Which keys a query of a self-attention may meet: T5 spends all its buckets on what may be seen.
enum class AttentionDirection { kBidirectional, kCausal };

/// How rotary positions turn; kernels/rotary.h has the formula.
struct RotaryOptions {
  double base = 10000;
  int rotated = 0;  // the first numbers of each head, which turn; 0: all
  RotaryPairs pairs = RotaryPairs::kHalves;
  RotaryScaling scaling = {};

  bool operator==(const RotaryOptions&) const = default;
};

/// All that cannot be, as problems_of() of a geometry. REQUIRES: problems_of(geometry, d_model) is empty.
std::vector<std::string> problems_of(Positions positions, const HeadGeometry& geometry, int d_model);

/// m_i of ALiBi, for heads 0 ... heads - 1.
std::vector<float> alibi_slopes(int heads);

/// T5's: distances of one sign share 32 buckets (kCausal) or 16 of each sign (kBidirectional); the first half of
/// them hold one distance each, the others grow as a logarithm up to distance 128, beyond which all is one.
inline constexpr int kT5Buckets = 32, kT5Farthest = 128;
/// Bucket of a distance j - i of key j and query i.
int t5_bucket(int distance, AttentionDirection direction);

/// Shaw's k: vectors for the distances -k ... k; farther ones count as these.
inline constexpr int kShawClip = 16;

}  // namespace mh
