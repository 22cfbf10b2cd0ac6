// --mute, --gate, --replace: heads that a verb changes while the model runs.
#pragma once

#include <string>
#include <vector>

#include "multihead/heads/sites/site_values.h"

namespace mh::cli {

class Verb;

/// What was given, each flag as often as one likes.
struct HeadChangeFlags {
  std::vector<std::string> mute;     // HEAD
  std::vector<std::string> gate;     // HEAD=X
  std::vector<std::string> replace;  // HEAD=RULE
  bool compare = false;              // --compare, which a verb may add; it needs one of them
};
void add_head_change_flags(Verb& verb, HeadChangeFlags& flags,
                           const std::string& example = "encoder.3.self_attention.1");
/// What they ask for. Throws UsageError on what is no head, number or rule, on a text that is muted and gated, and on --compare without any change.
SiteValues changed_heads(const HeadChangeFlags& flags);

}  // namespace mh::cli
