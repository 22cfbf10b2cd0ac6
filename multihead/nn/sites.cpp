#include "multihead/nn/sites.h"

#include <fmt/format.h>

#include "multihead/base/error.h"

namespace mh {

std::string_view name_of(SitePart part) {
  switch (part) {
    case SitePart::kEmbeddings:
      return "embeddings";
    case SitePart::kStates:
      return "states";
    case SitePart::kInput:
      return "input";
    case SitePart::kAfterSelfAttention:
      return "after_self_attention";
    case SitePart::kAfterCrossAttention:
      return "after_cross_attention";
    case SitePart::kHidden:
      return "feed_forward.hidden";
    case SitePart::kFeedForward:
      return "feed_forward.output";
    case SitePart::kOutput:
      return "output";
    case SitePart::kQueries:
      return "queries";
    case SitePart::kKeys:
      return "keys";
    case SitePart::kValues:
      return "values";
    case SitePart::kGates:
      return "gates";
    case SitePart::kHeads:
      return "heads";
  }
  return "";
}

std::string Site::name() const {
  return fmt::format("{}.{}", owner, name_of(part));
}

}  // namespace mh
