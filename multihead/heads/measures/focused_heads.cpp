#include <vector>

#include "multihead/heads/measures/head_statistics.h"
#include "multihead/heads/measures/inspect_heads.h"
#include "multihead/heads/sites/observe_text.h"

namespace mh {

std::vector<HeadName> most_focused_heads(const Observation& seen) {
  HeadStatistics statistics;
  constexpr int64_t kSentence[] = {0};
  for (const Model::Attention& attention : seen.attentions) {
    std::vector<ConstMatrixView> matrices;
    for (int h = 0; h < attention.heads; ++h) matrices.push_back(seen.weights({attention.name, h}));
    const auto queries = static_cast<size_t>(matrices[0].rows);
    const int32_t offsets[] = {0, static_cast<int32_t>(queries)};
    const std::vector<int32_t> keys(queries, static_cast<int32_t>(matrices[0].cols));
    statistics.weights({.attention = attention,
                        .sentences = kSentence,
                        .query_offsets = offsets,
                        .keys = keys,
                        .matrices = matrices,
                        .values = {},
                        .outputs = {}});
  }
  const std::vector<HeadFigures> heads = statistics.heads();
  std::vector<HeadName> chosen;
  for (const AttentionKind kind :
       {AttentionKind::kEncoderSelf, AttentionKind::kDecoderSelf, AttentionKind::kCross}) {
    const HeadFigures* best = nullptr;
    const auto telling = [](const HeadFigures& head) { return (1 - head.entropy_share) * (1 - head.on_end); };
    for (const HeadFigures& head : heads) {
      if (head.place.kind != kind) continue;
      if (!best || telling(head) > telling(*best)) best = &head;
    }
    if (best) chosen.push_back({best->attention, best->head});
  }
  return chosen;
}

}  // namespace mh
