#include "multihead/heads/reports/pictures/draw_heads.h"

#include <vector>

#include "multihead/heads/reports/pictures/heat_map_svg.h"
#include "multihead/nn/attention_place.h"

namespace mh {

std::string draw_heads(const Observation& seen, std::span<const HeadName> heads) {
  std::vector<HeatMapPanel> panels;
  for (const HeadName& head : heads) {
    const AttentionKind kind = seen.place(head.attention).kind;
    panels.push_back({.title = head.name(),
                      .caption = what_attends(kind),
                      .weights = seen.weights(head),
                      .queries = seen.query_labels(kind),
                      .keys = seen.key_labels(kind)});
  }
  return heat_maps_as_svg(panels);
}

std::string draw_heads(const Observation& seen) {
  std::vector<HeadGridRow> rows;
  for (const auto& [attention, heads, place] : seen.attentions) {
    HeadGridRow& row = rows.emplace_back(HeadGridRow{.title = attention, .heads = {}});
    for (int h = 0; h < heads; ++h) row.heads.push_back(seen.weights({attention, h}));
  }
  std::string text;
  for (size_t i = 0; i + 1 < seen.source.labels.size(); ++i)  // but for the end token
    text += (i == 0 ? "" : " ") + seen.source.labels[i];
  return head_grid_as_svg(text, rows);
}

}  // namespace mh
