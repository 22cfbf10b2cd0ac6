// Heads on one sentence as a picture in SVG.
//
//   const mh::SentenceWeights sentence = mh::sentence_weights(folder, "the small dog sees a cat .");
//   mh::write_file_atomically("heads.svg", mh::draw_heads(sentence));
#pragma once

#include <span>
#include <string>

#include "multihead/nn/head_name.h"
#include "multihead/recipes/inspect_heads.h"

namespace mh {

/// The heat maps of these heads, with the sentence's tokens. Throws UsageError on heads that the model does
/// not have.
std::string draw_heads(const SentenceWeights& sentence, std::span<const HeadName> heads);

/// All heads of the model, small: an attention a row.
std::string draw_heads(const SentenceWeights& sentence);

}  // namespace mh
