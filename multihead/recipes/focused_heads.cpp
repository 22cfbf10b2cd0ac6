#include <vector>

#include "multihead/analysis/head_statistics.h"
#include "multihead/recipes/inspect_heads.h"

namespace mh {

std::vector<HeadName> most_focused_heads(const SentenceWeights& sentence) {
  HeadStatistics statistics;
  for (const KeptAttention& kept : sentence.attentions) {
    std::vector<float> weights;
    for (const Tensor& head : kept.heads)
      weights.insert(weights.end(), head.data(), head.data() + head.size());
    const int32_t queries[] = {0, static_cast<int32_t>(kept.heads[0].rows())};
    const int32_t keys[] = {0, static_cast<int32_t>(kept.heads[0].cols())};
    statistics.weights({.name = kept.attention,
                        .heads = static_cast<int>(kept.heads.size()),
                        .query_offsets = queries,
                        .key_offsets = keys,
                        .weights = weights.data()});
  }
  const std::vector<HeadFigures> heads = statistics.heads();
  std::vector<HeadName> chosen;
  for (const AttentionKind kind :
       {AttentionKind::kEncoderSelf, AttentionKind::kDecoderSelf, AttentionKind::kCross}) {
    const HeadFigures* best = nullptr;
    const auto telling = [](const HeadFigures& head) { return (1 - head.entropy_share) * (1 - head.on_end); };
    for (const HeadFigures& head : heads) {
      if (attention_place(head.attention).kind != kind) continue;
      if (!best || telling(head) > telling(*best)) best = &head;
    }
    if (best) chosen.push_back({best->attention, best->head});
  }
  return chosen;
}

}  // namespace mh
