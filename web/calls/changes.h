// What a call changes inside the model while it runs, as JSON:
//
//   {"mute": ["encoder.0.self_attention.1"],
//    "gate": [{"heads": "encoder.1.*", "by": 0.5}],
//    "replace": [{"heads": "decoder.0.self_attention.0", "rule": "uniform"}]}
#pragma once

#include <string>
#include <vector>

#include "multihead/heads/sites/site_values.h"

namespace mh::web {

struct GatedHeads {
  std::string heads = {};  // a name or a pattern (nn/head_name.h)
  float by = 1;            // the factor on what they give

  template <class V>
  void visit(V& v) {
    v("heads", heads, {.required = true});
    v("by", by, {.required = true});
  }
};

struct RuledHeads {
  std::string heads = {};
  WeightRule rule = WeightRule::kUniform;

  template <class V>
  void visit(V& v) {
    v("heads", heads, {.required = true});
    v("rule", rule, kWeightRuleNames);
  }
};

struct Changes {
  std::vector<std::string> mute = {};
  std::vector<GatedHeads> gate = {};
  std::vector<RuledHeads> replace = {};

  template <class V>
  void visit(V& v) {
    v("mute", mute);
    v("gate", gate);
    v("replace", replace);
  }

  /// Throws UsageError as SiteValues does.
  SiteValues values() const {
    SiteValues changed;
    for (const std::string& heads : mute) changed.mute(heads);
    for (const GatedHeads& one : gate) changed.set_gate(one.heads, one.by);
    for (const RuledHeads& one : replace) changed.replace_weights(one.heads, one.rule);
    return changed;
  }
};

}  // namespace mh::web
