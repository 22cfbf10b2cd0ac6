#include "multihead/autograd/map_rows.h"

#include <algorithm>

#include "multihead/kernels/elementwise.h"

namespace mh {
namespace {

/// A sequence's map of one head: a matrix [Tq, Tk] from `first` on, whose rows stand from `row` on.
struct Place {
  int64_t first, row, queries, keys;

  template <class Row>
  MatrixView in(Row maps) const {
    return {maps + first, queries, keys};
  }
  MatrixView in(MatrixView rows) const {
    return rows.rows_between(row, row + queries).columns_between(0, keys);
  }
};

std::span<const Place> places_of(Tape& tape, const AttentionInputs& in, int head, HeadRange heads) {
  const int end = heads.end < 0 ? in.heads : heads.end;
  MH_ASSERT(heads.begin <= head && head < end);
  const auto count = static_cast<int64_t>(in.query_offsets.size()) - 1;
  const auto all = tape.arena().array<Place>(count);
  int64_t first = 0;
  for (size_t s = 0; s < all.size(); ++s) {
    const int64_t queries = in.query_offsets[s + 1] - in.query_offsets[s],
                  keys = in.key_offsets[s + 1] - in.key_offsets[s];
    all[s] = {first + (head - heads.begin) * queries * keys, in.query_offsets[s], queries, keys};
    first += (end - heads.begin) * queries * keys;
  }
  return all;
}

void fill(MatrixView to, float number) {
  for (int64_t i = 0; i < to.rows; ++i) std::fill_n(to.row(i), to.cols, number);
}

}  // namespace

Var map_rows(Tape& tape, Var maps, const AttentionInputs& inputs, int head, HeadRange heads) {
  const auto places = places_of(tape, inputs, head, heads);
  int64_t longest = 0;
  for (const Place& place : places) longest = std::max(longest, place.keys);
  // Where no key is missing, the map of a single head is these rows.
  if (!maps.wants_gradient() && maps.cols() == inputs.query_offsets.back() * longest)
    return tape.constant({maps.value().data, inputs.query_offsets.back(), longest});
  Var y = tape.make(inputs.query_offsets.back(), longest, {maps});
  fill(y.value(), 0);
  for (const Place& place : places)
    copy_or_add(place.in(maps.value().data), place.in(y.value()), Write::kOverwrite);
  tape.record(y, [&tape, maps, y, places] {
    if (!maps.wants_gradient()) return;
    const Tape::Target dx = tape.gradient_of(maps);
    if (dx.write == Write::kOverwrite) fill(dx.gradient, 0);
    for (const Place& place : places)
      copy_or_add(place.in(y.gradient()), place.in(dx.gradient.data), Write::kAdd);
  });
  return y;
}

Var replace_map_rows(Tape& tape, Var maps, Var rows, const AttentionInputs& inputs, int head,
                     HeadRange heads) {
  const auto places = places_of(tape, inputs, head, heads);
  Var y = tape.make(1, maps.cols(), {maps, rows});
  copy_or_add(maps.value(), y.value(), Write::kOverwrite);
  for (const Place& place : places)
    copy_or_add(place.in(rows.value()), place.in(y.value().data), Write::kOverwrite);
  // d rows = dy of the head;  d maps = dy, and 0 there
  tape.record(y, [&tape, maps, rows, y, places] {
    if (rows.wants_gradient()) {
      const Tape::Target d = tape.gradient_of(rows);
      if (d.write == Write::kOverwrite) fill(d.gradient, 0);
      for (const Place& place : places)
        copy_or_add(place.in(y.gradient().data), place.in(d.gradient), Write::kAdd);
    }
    if (!maps.wants_gradient()) return;
    for (const Place& place : places) fill(place.in(y.gradient().data), 0);
    const Tape::Target dx = tape.gradient_of(maps);
    copy_or_add(y.gradient(), dx.gradient, dx.write);
  });
  return y;
}

}  // namespace mh
