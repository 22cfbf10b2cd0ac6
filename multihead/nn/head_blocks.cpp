#include "multihead/nn/head_blocks.h"

#include "multihead/base/error.h"
#include "multihead/nn/head_scheme.h"

namespace mh {

std::optional<Block> head_block(const HeadGeometry& g, int d_model, const NamedShape& parameter, int head) {
  MH_ASSERT(0 <= head && head < g.heads);
  if (parameter.name != "w_o") return scheme_of(g).block(g, d_model, parameter, head);
  const int64_t size = parameter.rows / g.heads;
  return Block{size * head, size * (head + 1), 0, parameter.cols};
}

std::optional<Block> columns_of_head(const NamedShape& parameter, int head, int heads,
                                     std::initializer_list<std::pair<std::string_view, int>> side_by_side) {
  for (const auto& [name, count] : side_by_side) {
    if (name != parameter.name) continue;
    if (count == 1 && heads > 1) return std::nullopt;
    const int64_t size = parameter.cols / count, index = int64_t{head} * count / heads;
    return Block{0, parameter.rows, size * index, size * (index + 1)};
  }
  return std::nullopt;
}

}  // namespace mh
