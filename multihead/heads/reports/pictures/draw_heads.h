// Heads on one sentence as a picture in SVG.
//
//   const mh::Observation seen = mh::observe_text(folder, "the small dog sees a cat .");
//   mh::write_file_atomically("heads.svg", mh::draw_heads(seen));
#pragma once

#include <span>
#include <string>

#include "multihead/heads/sites/observe_text.h"
#include "multihead/nn/head_name.h"

namespace mh {

/// The heat maps of these heads, with the text's tokens. Throws UsageError on heads that the model does not have,
/// and on those whose weights were not kept.
std::string draw_heads(const Observation& seen, std::span<const HeadName> heads);

/// All heads of the model, small: an attention a row.
std::string draw_heads(const Observation& seen);

}  // namespace mh
