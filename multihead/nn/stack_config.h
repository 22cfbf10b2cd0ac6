// StackConfig: everything in which the layers of one Transformer differ from those of another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/kernels/elementwise.h"
#include "multihead/kernels/mask.h"
#include "multihead/kernels/norm.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/positions.h"

namespace mh {

/// Where the norms of a sublayer stand.
enum class NormPlacement {
  kPost,          // Norm(x + Sublayer(x)), the paper's
  kPre,           // x + Sublayer(Norm(x)), and a norm at the end of the stack
  kOutput,        // x + Norm(Sublayer(x)), and a norm at the end of the stack (OLMo 2, 2024)
  kPreAndOutput,  // x + Norm'(Sublayer(Norm(x))), and a norm at the end of the stack (Gemma 2, 2024)
};
inline constexpr EnumNames<NormPlacement> kNormPlacementNames = {
    {"post", NormPlacement::kPost},
    {"pre", NormPlacement::kPre},
    {"output", NormPlacement::kOutput},
    {"pre_and_output", NormPlacement::kPreAndOutput}};
/// Whether the input of a sublayer is normed.
constexpr bool norms_input(NormPlacement placement) {
  return placement == NormPlacement::kPre || placement == NormPlacement::kPreAndOutput;
}
/// Whether the output of a sublayer is normed before it is added.
constexpr bool norms_output(NormPlacement placement) {
  return placement == NormPlacement::kOutput || placement == NormPlacement::kPreAndOutput;
}

/// What the feed-forward layer reads.
enum class SublayerOrder {
  kOneAfterAnother,  // the sum of x and what attention added, the paper's
  kParallel,  // x, as attention does, through a norm of its own: x + Attention(Norm(x)) + FeedForward(Norm'(x))
              // (GPT-NeoX, Black et al. 2022)
  kParallelOneNorm,  // the same row as attention, through the same norm (GPT-J; Phi, 2023)
};
inline constexpr EnumNames<SublayerOrder> kSublayerOrderNames = {
    {"one_after_another", SublayerOrder::kOneAfterAnother},
    {"parallel", SublayerOrder::kParallel},
    {"parallel_one_norm", SublayerOrder::kParallelOneNorm}};

struct NormConfig {
  NormKind kind = NormKind::kLayer;
  NormPlacement placement = NormPlacement::kPost;
  float epsilon = 1e-5f;
  Biases biases = Biases::kAll;               // of layer norms; RMS norms have none
  std::optional<bool> at_end = std::nullopt;  // a norm after the last layer; unset: with all but kPost
  bool is_at_end() const { return at_end.value_or(placement != NormPlacement::kPost); }
};

/// Dropout rates: the shares of numbers that training sets to 0.
struct DropoutRates {
  float residual = 0.1f;  // outputs of sublayers, and embeddings
  float weights = 0;      // attention weights
  float activation = 0;   // the feed-forward layer's hidden values
};

/// activation(x W_1 + b_1) W_2 + b_2    (Vaswani et al. 2017, eq. 2), or gated
/// (activation(x W_gate + b_gate) * (x W_1 + b_1)) W_2 + b_2    (Shazeer 2020).
struct FeedForwardConfig {
  int d_ff = 2048;
  Activation activation = Activation::kRelu;
  bool gated = false;
  Biases biases = Biases::kAll;
};

/// Which keys a query of self-attention may see.
struct StackMask {
  enum class Kind {
    kNone,    // all keys of its sequence: an encoder
    kLocal,   // those at most `window` positions away, on both sides (Beltagy et al. 2020; ModernBERT)
    kCausal,  // its own and those before it: a decoder
    kWindow,  // the last `window` of those, including its own (Mistral)
  };
  Kind kind = Kind::kNone;
  int32_t window = 0;

  bool operator==(const StackMask&) const = default;
  bool has_window() const { return kind == Kind::kLocal || kind == Kind::kWindow; }

  static StackMask none() { return {}; }
  static StackMask local(int32_t farthest) { return {Kind::kLocal, farthest}; }
  static StackMask causal() { return {Kind::kCausal}; }
  static StackMask sliding_window(int32_t keys) { return {Kind::kWindow, keys}; }

  /// The mask for the kernel; the last query is aligned with the last key.
  Mask mask() const {
    switch (kind) {
      case Kind::kNone:
        return Mask::none();
      case Kind::kLocal:
        return Mask::window(window, window);
      case Kind::kCausal:
        return Mask::causal();
      case Kind::kWindow:
        break;
    }
    return Mask::window(window - 1, 0);
  }
  AttentionDirection direction() const {
    return kind == Kind::kNone || kind == Kind::kLocal ? AttentionDirection::kBidirectional
                                                       : AttentionDirection::kCausal;
  }
};

/// One layer; the layers of a stack may differ.
struct LayerConfig {
  HeadGeometry self_attention = {};
  HeadGeometry cross_attention = {};  // used when the stack has cross-attention
  FeedForwardConfig feed_forward = {};
  // Of self-attention, where a layer differs from its stack.
  std::optional<StackMask> mask = std::nullopt;
  std::optional<Positions> positions = std::nullopt;  // SmolLM3's layers without positions
  std::optional<RotaryOptions> rotary = std::nullopt;
  bool norm_before =
      true;  // with kPre; no: the layer's input has just been normed (ModernBERT's first layer)
};

struct StackConfig {
  std::string name = "encoder";  // attentions are "NAME.3.self_attention"
  int d_model = 512;
  std::vector<LayerConfig> layers = {};
  StackMask mask = {};           // of layers that have none of their own
  bool cross_attention = false;  // whether layers have cross-attention to a memory
  /// Of self-attention. Positions that are added to embeddings change nothing here.
  Positions positions = Positions::kNone;
  RotaryOptions rotary = {};              // for Positions::kRotary
  bool one_bias = false;                  // for Positions::kT5: one table for all layers, as in T5
  T5Buckets buckets = {};                 // for Positions::kT5
  DisentangledOptions disentangled = {};  // for Positions::kDisentangled
  NormConfig norm = {};
  SublayerOrder order =
      SublayerOrder::kOneAfterAnother;  // the parallel ones: with kPre, without cross-attention
  DropoutRates dropout = {};

  /// The positions of a layer's self-attention.
  Positions positions_of(size_t layer) const { return layers[layer].positions.value_or(positions); }
  /// What self-attention of a layer sees.
  const StackMask& mask_of(size_t layer) const { return layers[layer].mask ? *layers[layer].mask : mask; }
};

/// Hands out the numbers of dropout streams while a model is built, in a fixed order: each place that drops
/// values has one.
class DropoutStreams {
 public:
  uint32_t next() { return next_++; }

 private:
  uint32_t next_ = 0;
};

}  // namespace mh
