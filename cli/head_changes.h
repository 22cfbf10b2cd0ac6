// --mute, --gate, --replace, --steer: what a verb changes inside a model while it runs.
#pragma once

#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/heads/steering/heads_steer.h"

namespace mh::cli {

class Verb;

/// What was given, each flag as often as one likes.
struct HeadChangeFlags {
  std::vector<std::string> mute;     // HEAD
  std::vector<std::string> gate;     // HEAD=X
  std::vector<std::string> replace;  // HEAD=RULE
  std::vector<std::string> steer;    // FILE, FILE=X
  bool compare = false;              // --compare, which a verb may add; it needs one of them
};
/// What they ask for.
struct ChangedHeads {
  SiteValues values = {};
  std::vector<SteerDirection> directions = {};  // that are added

  /// What a task is given: null where nothing is changed.
  Sites* sites() { return values.empty() ? nullptr : &values; }
  /// Throws UsageError on heads that the model does not have, and on directions that were made with another one.
  void check(const ModelFolder& folder) const;
};
void add_head_change_flags(Verb& verb, HeadChangeFlags& flags,
                           const std::string& example = "encoder.3.self_attention.1");
/// Throws UsageError on what is no head, number or rule, on a head that is muted and gated, and on --compare without any change; as
/// read_direction() does on files of directions.
ChangedHeads changed_heads(const HeadChangeFlags& flags);

}  // namespace mh::cli
