// Aligns the tokens of given translations with their sources: each target token is aligned to the source
// token on which cross-attention puts the largest weight.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "multihead/generate/search.h"
#include "multihead/io/config.h"
#include "multihead/models/language_model.h"
#include "multihead/nn/context.h"

namespace mh {

struct AlignOptions {
  int32_t layer = -1;  // layer of the decoder, from 0; -1: the last one
  int32_t head = -1;   // head of its cross-attention; -1: the mean of all heads
  /// Given any, these count in place of the layer and its head.
  AligningHeads heads = {};

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Heads";
    v("alignment_layer", layer, {.low = -1},
      {.group = kGroup,
       .help = "Decoder layer whose cross-attention the alignment is read off; -1: the last",
       .rare = true});
    v("alignment_head", head, {.low = -1},
      {.group = kGroup,
       .help = "Head that the alignment is read off; -1: the mean of all heads",
       .rare = true});
  }
};

/// Returns the alignment of each pair of sentences. Target token t is aligned to the source token with the
/// largest weight in the step that predicts t, or that has just read it (AligningHeads::query; ties: the first); when that is the
/// source's end token, t is aligned to nothing, and so is the last token of a target that fills the model, which no step reads.
/// Targets have no end token. This takes one pass with teacher forcing. `context` must
/// have no dropout and a tape that does not record; the tape is cleared.
/// Throws UsageError on a layer or head that the model does not have (check_heads()), and ShapeError unless there is a
/// target for each source.
std::vector<std::vector<AlignmentPoint>> align(const LanguageModel& model, Context context,
                                               const Sequences& source,
                                               std::span<const std::vector<int32_t>> targets,
                                               const AlignOptions& options = {});

/// Throws UsageError, which begins with `name`, on a head that the model's cross-attention does not have, and on none.
void check_heads(const LanguageModel& model, const AligningHeads& heads, std::string_view name);

}  // namespace mh
