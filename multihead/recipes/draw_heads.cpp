#include "multihead/recipes/draw_heads.h"

#include <fmt/format.h>

#include <vector>

#include "multihead/analysis/attention_name.h"
#include "multihead/analysis/heat_map_svg.h"

namespace mh {

std::string draw_heads(const SentenceWeights& sentence, std::span<const HeadName> heads) {
  std::vector<HeatMapPanel> panels;
  for (const HeadName& head : heads) {
    const AttentionKind kind = attention_place(head.attention).kind;
    panels.push_back({.title = fmt::format("{}.{}", head.attention, head.head),
                      .caption = what_attends(kind),
                      .weights = sentence.weights(head).view(),
                      .queries = sentence.query_labels(kind),
                      .keys = sentence.key_labels(kind)});
  }
  return heat_maps_as_svg(panels);
}

std::string draw_heads(const SentenceWeights& sentence) {
  std::vector<HeadGridRow> rows;
  for (const KeptAttention& kept : sentence.attentions) {
    HeadGridRow& row = rows.emplace_back(HeadGridRow{.title = kept.attention, .heads = {}});
    for (const Tensor& head : kept.heads) row.heads.push_back(head.view());
  }
  std::string text;
  for (size_t i = 0; i + 1 < sentence.source_labels.size(); ++i)  // but for the end token
    text += (i == 0 ? "" : " ") + sentence.source_labels[i];
  return head_grid_as_svg(text, rows);
}

}  // namespace mh
