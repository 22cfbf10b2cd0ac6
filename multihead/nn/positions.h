// Positional encoding: how a model knows the order of its tokens. Either vectors are added to the
// embeddings, or each self-attention does something to its queries, keys or scores. Cross-attention uses no
// positions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/kernels/rotary.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

enum class Positions {
  kSinusoidal,  // sines and cosines, added to the embeddings (Vaswani et al. 2017, section 3.5)
  kLearned,  // a learned vector for each position, added to the embeddings; encoder and decoder each have a
             // table
  kRotary,   // queries and keys are turned by an angle that grows with their position (Su et al. 2021)
  kAlibi,    // m_i |distance| is subtracted from the scores of head i = 1 ... h, with m_i = 2^(-8 i / h)
             // (Press et al. 2022)
  kT5,       // a learned number for each head and bucket of distances is added to the scores (Raffel et al.
             // 2020). Each layer has its own, unless StackConfig::one_bias
  kShaw,     // a learned vector for the distance is added to the key (Shaw et al. 2018). All heads of a layer
             // share the vectors. There are none for values, which their table 3 finds unnecessary
  kDisentangled,  // each query meets a vector of the distance, and so does each key (DeBERTa, He et al. 2021): see
                  // DisentangledOptions. Of encoders alone, since a cache keeps no keys' products
  kNone,          // nothing; only a causal mask tells anything about the order
};

inline constexpr EnumNames<Positions> kPositionNames = {{"sinusoidal", Positions::kSinusoidal},
                                                        {"learned", Positions::kLearned},
                                                        {"rotary", Positions::kRotary},
                                                        {"alibi", Positions::kAlibi},
                                                        {"t5", Positions::kT5},
                                                        {"shaw", Positions::kShaw},
                                                        {"disentangled", Positions::kDisentangled},
                                                        {"none", Positions::kNone}};

/// Those of models that write texts: all but the disentangled ones.
inline constexpr EnumNames<Positions> kWriterPositionNames = {{"sinusoidal", Positions::kSinusoidal},
                                                              {"learned", Positions::kLearned},
                                                              {"rotary", Positions::kRotary},
                                                              {"alibi", Positions::kAlibi},
                                                              {"t5", Positions::kT5},
                                                              {"shaw", Positions::kShaw},
                                                              {"none", Positions::kNone}};

/// Which sinusoids are added (kernels/embedding.h has the formulas): they differ in their last frequency.
enum class SinusoidForm { kMarian, kFairseq };

inline constexpr EnumNames<SinusoidForm> kSinusoidFormNames = {{"marian", SinusoidForm::kMarian},
                                                               {"fairseq", SinusoidForm::kFairseq}};

/// Whether a query of self-attention sees keys on both sides or only earlier ones. T5 assigns its buckets
/// accordingly.
enum class AttentionDirection { kBidirectional, kCausal };

inline constexpr EnumNames<RotaryScaling::Kind> kRotaryScalingNames = {
    {"none", RotaryScaling::Kind::kNone},
    {"linear", RotaryScaling::Kind::kLinear},
    {"llama3", RotaryScaling::Kind::kLlama3},
    {"yarn", RotaryScaling::Kind::kYarn},
    {"longrope", RotaryScaling::Kind::kFactors}};

/// How rotary positions turn; kernels/rotary.h has the formula.
struct RotaryOptions {
  double base = 10000;
  int rotated = 0;  // how many numbers of each head turn, from the first on; 0: all
  RotaryPairs pairs = RotaryPairs::kHalves;
  RotaryScaling scaling = {};        // its factors are those below
  std::vector<double> factors = {};  // of RotaryScaling::Kind::kFactors, one for each pair

  bool operator==(const RotaryOptions&) const = default;
};

/// Returns everything that is wrong with these positions for this geometry, one clause each. REQUIRES:
/// problems_of(geometry, d_model) is empty.
std::vector<std::string> problems_of(Positions positions, const HeadGeometry& geometry, int d_model);

/// Returns the slopes m_i of ALiBi for all heads.
std::vector<float> alibi_slopes(int heads);

/// T5's buckets: `count` for the distances of one sign (kCausal), or half as many for each sign (kBidirectional). The
/// first half of them hold one distance each; the others grow logarithmically up to distance `farthest`, and the
/// last one holds all beyond.
struct T5Buckets {
  int count = 32, farthest = 128;

  bool operator==(const T5Buckets&) const = default;
};
/// Returns what is wrong with them, a clause; empty when nothing is. Both directions must find a first half.
std::string problem_of(const T5Buckets& buckets);
/// Returns the bucket of the distance j - i of key j from query i. REQUIRES: problem_of(buckets) is empty.
int t5_bucket(int distance, AttentionDirection direction, const T5Buckets& buckets = {});

/// Disentangled attention. With c the column of the distance i - j, the score of query i and key j is
///   scale (q_i . k_j + q_i . k^r_c + k_j . q^r_c),  k^r = R W^{K,r} + b^{K,r},  q^r = R W^{Q,r} + b^{Q,r}
/// for each head. R [2 span, d_model] has a row for each distance, or for several; all layers share it.
struct DisentangledOptions {
  bool content_to_position = true;  // q_i . k^r_c
  bool position_to_content = true;  // k_j . q^r_c
  /// W^{K,r} and W^{Q,r} are the W^K and W^Q of the layer, with their biases; no: matrices of their own.
  bool shared_projections = true;
  int span = 256;
  /// 0: a row for each distance, from -span ... span - 1. Above: distances share rows, the more the larger they are, up to this
  /// one (DeBERTa-v2's position_buckets).
  int farthest = 512;
  bool normed = true;  // R goes through a layer norm, which all layers share, too

  bool operator==(const DisentangledOptions&) const = default;
};
/// Returns what is wrong with them, a clause; empty when nothing is.
std::string problem_of(const DisentangledOptions& options);
/// The row c of R for the distance i - j of query i from key j. REQUIRES: problem_of(options) is empty.
int disentangled_column(int distance, const DisentangledOptions& options);

/// Shaw's k: there are vectors for the distances -k ... k; longer distances are clipped to them.
inline constexpr int kShawClip = 16;

}  // namespace mh
