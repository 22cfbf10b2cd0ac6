// Where activation patching puts a value in, and how the model then decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/base/enum_names.h"
#include "multihead/nn/attention_place.h"

namespace mh {

/// What of the clean run is put into the corrupt one.
enum class PatchedPart {
  kHeads,    // what a head gives before W^O, the site ATTENTION.heads
  kPattern,  // a head's weights, the site ATTENTION.weights.HEAD
  kStream,   // the input of a layer, LAYER.input, or what the last layer of a stack gives, LAYER.output
};
inline constexpr EnumNames<PatchedPart> kPatchedPartNames = {
    {"heads", PatchedPart::kHeads}, {"patterns", PatchedPart::kPattern}, {"stream", PatchedPart::kStream}};

/// Where.
struct PatchPlace {
  std::string stack;                       // "encoder", "decoder"
  int layer = 0;                           // of the stream also the number of layers: the last one's output
  std::string attention = {};              // empty: the stream
  std::optional<AttentionKind> kind = {};  // of the attention
  int head = 0;
  std::optional<int32_t> position = {};  // none: all positions
};

/// A run's score of each answer; the run's score is their difference.
struct AnswerScores {
  double answer = 0;
  double wrong = 0;
  double score() const { return answer - wrong; }
};

}  // namespace mh
