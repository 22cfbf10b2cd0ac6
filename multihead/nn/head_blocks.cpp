#include "multihead/nn/head_blocks.h"

namespace mh {
namespace {

/// The part of `index` when `size` things are dealt to `parts` in order.
struct Part {
  int64_t begin, end;
};
Part part_of(int64_t size, int64_t parts, int64_t index) {
  return {size / parts * index, size / parts * (index + 1)};
}

}  // namespace

HeadColumns columns_read(const HeadGeometry& g, int d_model) {
  switch (g.input.kind) {
    case HeadInput::Kind::kColumns:
      return g.input.columns;
    case HeadInput::Kind::kSlices:
    case HeadInput::Kind::kProjectedSlices:
      return slice_columns(g.heads, d_model);
    case HeadInput::Kind::kWholeRow:
      break;
  }
  return HeadColumns(static_cast<size_t>(g.heads), slice_columns(1, d_model)[0]);
}

std::optional<Block> head_block(const HeadGeometry& g, int d_model, std::string_view name, int64_t rows,
                                int64_t cols, int head) {
  MH_ASSERT(0 <= head && head < g.heads);
  const auto columns = [&](int64_t heads) -> std::optional<Block> {
    if (heads == 1 && g.heads > 1) return std::nullopt;
    const Part part = part_of(cols, heads, head * heads / g.heads);
    return Block{0, rows, part.begin, part.end};
  };
  if (name == "w_o") {
    const Part part = part_of(rows, g.heads, head);
    return Block{part.begin, part.end, 0, cols};
  }
  if (name == "w_qk" || name == "c_qk") return columns(g.heads);
  if (name == "mixing") return Block{head, head + 1, 0, cols};
  if (name.size() != 3 || name[1] != '_') return std::nullopt;

  const char letter = name[2];
  if (letter != 'q' && letter != 'k' && letter != 'v') return std::nullopt;
  if (g.scores == Scores::kCollaborative && letter != 'v') return std::nullopt;
  const int64_t heads = letter == 'q' ? g.heads : letter == 'k' ? g.key_heads : g.value_heads;
  if (name[0] == 'b' || g.input.kind == HeadInput::Kind::kWholeRow) return columns(heads);
  if (g.input.one_for_all) return std::nullopt;
  int64_t begin = 0;  // the heads' matrices stand below each other
  const HeadColumns read = columns_read(g, d_model);
  for (int h = 0; h < head; ++h) begin += static_cast<int64_t>(read[static_cast<size_t>(h)].size());
  return Block{begin, begin + static_cast<int64_t>(read[static_cast<size_t>(head)].size()), 0, cols};
}

}  // namespace mh
