// What heads do, as JSON for other programs: what `multihead heads --json` prints. docs/file-formats.md describes every field.
#pragma once

#include <span>
#include <string>

#include "multihead/base/precision.h"
#include "multihead/heads/measures/inspect_heads.h"
#include "multihead/heads/sites/observe_text.h"

namespace mh {

/// "schema" of the JSON. Fields may be added to a schema; one that goes or changes its meaning makes a new one.
inline constexpr int kHeadsSchema = 1;

struct HeadsReported {
  std::string model = {};          // what the JSON calls it
  PrecisionChoice precision = {};  // with which it ran
  /// What heads do on a text; null: it is left out.
  const HeadReport* report = nullptr;
  /// One sentence, and the heads whose weights are written; null: it is left out.
  const Observation* sentence = nullptr;
  std::span<const HeadName> heads = {};
};

/// Throws UsageError when the weights of one of `heads` were not kept.
std::string report_json(const HeadsReported& reported);

}  // namespace mh
