#include "multihead/nn/head_geometry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/kernels/attention.h"

namespace mh {
namespace {

void check_columns(const HeadGeometry& g, int d_model, std::vector<std::string>& found) {
  if (g.input.columns.size() != static_cast<size_t>(g.heads)) {
    found.push_back(fmt::format("input.columns has {} lists for {} heads; give one a head",
                                g.input.columns.size(), g.heads));
    return;
  }
  for (size_t h = 0; h < g.input.columns.size(); ++h) {
    const auto& columns = g.input.columns[h];
    if (columns.empty()) {
      found.push_back(
          fmt::format("input.columns of head {} is empty; a head must see at least one number", h));
      return;
    }
    const bool rising =
        std::adjacent_find(columns.begin(), columns.end(), std::greater_equal<>()) == columns.end();
    if (!rising || columns.front() < 0 || columns.back() >= d_model) {
      found.push_back(fmt::format("input.columns of head {} is {}; expected rising numbers below d_model {}",
                                  h, fmt::join(columns, " "), d_model));
      return;
    }
  }
}

bool equally_many(const HeadColumns& columns) {
  return std::all_of(columns.begin(), columns.end(),
                     [&](const auto& head) { return head.size() == columns.front().size(); });
}

}  // namespace

HeadColumns slice_columns(int heads, int d_model) {
  HeadColumns columns(static_cast<size_t>(heads));
  for (int h = 0; h < heads; ++h) {
    const auto begin = static_cast<int32_t>(int64_t{h} * d_model / heads);
    const auto end = static_cast<int32_t>((int64_t{h} + 1) * d_model / heads);
    for (int32_t c = begin; c < end; ++c) columns[static_cast<size_t>(h)].push_back(c);
  }
  return columns;
}

HeadColumns permuted_slices(int heads, int d_model, uint64_t seed) {
  std::vector<int32_t> order(static_cast<size_t>(d_model));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed);
  random.shuffle(order);
  HeadColumns columns = slice_columns(heads, d_model);
  for (auto& head : columns) {
    for (int32_t& c : head) c = order[static_cast<size_t>(c)];
    std::sort(head.begin(), head.end());
  }
  return columns;
}

HeadColumns random_columns(int heads, int size, int d_model, uint64_t seed) {
  MH_ASSERT(1 <= size && size <= d_model);
  std::vector<int32_t> order(static_cast<size_t>(d_model));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed);
  HeadColumns columns;
  for (int h = 0; h < heads; ++h) {
    random.shuffle(order);
    columns.emplace_back(order.begin(), order.begin() + size);
    std::sort(columns.back().begin(), columns.back().end());
  }
  return columns;
}

HeadColumns spread_segments(int heads, int size, int d_model) {
  MH_ASSERT(1 <= size && size <= d_model);
  HeadColumns columns;
  for (int h = 0; h < heads; ++h) {
    const auto begin = static_cast<int32_t>(heads == 1 ? 0 : int64_t{h} * (d_model - size) / (heads - 1));
    std::vector<int32_t> head(static_cast<size_t>(size));
    std::iota(head.begin(), head.end(), begin);
    columns.push_back(std::move(head));
  }
  return columns;
}

std::vector<std::string> problems(const HeadGeometry& g, int d_model) {
  std::vector<std::string> found;
  const auto add = [&](std::string text) { found.push_back(std::move(text)); };
  if (d_model < 1) add(fmt::format("d_model is {}; expected at least 1", d_model));
  if (g.heads < 1) add(fmt::format("heads is {}; expected at least 1", g.heads));
  if (!found.empty()) return found;

  const int maps = maps_per_head(g);
  if (g.d_key == 0 && d_model % (maps * g.heads) != 0) {
    add(fmt::format("heads is {}, {} does not divide d_model {}; set d_key, for example to {}", g.heads,
                    maps == 1 ? "which" : "twice which", d_model, std::max(1, d_model / (maps * g.heads))));
    return found;
  }
  const int d_key = g.d_key != 0 ? g.d_key : d_model / (maps * g.heads);
  const int d_value = g.d_value != 0 ? g.d_value : maps * d_key;
  const auto check_size = [&](const char* name, int size) {
    if (size < 1 || size > kLargestHead)
      add(fmt::format("{} is {}; expected 1 ... {}", name, size, kLargestHead));
  };
  check_size("d_key", d_key);
  check_size("d_value", d_value);
  const auto check_sharing = [&](const char* name, int heads) {
    if (heads < 0 || (heads > 0 && (heads > g.heads || g.heads % heads != 0))) {
      add(fmt::format("{} is {}; expected a divisor of the {} heads, for example 1", name, heads, g.heads));
    }
  };
  check_sharing("key_heads", g.key_heads);
  check_sharing("value_heads", g.value_heads);
  const bool shares =
      (g.key_heads != 0 && g.key_heads != g.heads) || (g.value_heads != 0 && g.value_heads != g.heads);

  using Kind = HeadInput::Kind;
  if (g.input.kind == Kind::kColumns) check_columns(g, d_model, found);
  if ((g.input.kind == Kind::kSlices || g.input.kind == Kind::kProjectedSlices) && g.heads > d_model) {
    add(fmt::format("heads is {}, more than the d_model {} numbers there are to slice; use at most {} heads",
                    g.heads, d_model, d_model));
  }
  if (g.input.kind != Kind::kWholeRow) {
    if (g.scores != Scores::kQueryKey) {
      add("scores other than query_key need heads that read the whole row; set input to whole_row");
    }
    if (shares)
      add("key_heads and value_heads must equal heads when heads read parts of the row; set both to 0");
  }
  if (g.input.one_for_all) {
    if (g.input.kind == Kind::kWholeRow) {
      add("input.one_for_all would make all heads that read the whole row the same; use slices");
    } else if (g.input.kind == Kind::kColumns) {
      if (!equally_many(g.input.columns)) {
        add("input.one_for_all needs heads that read equally many columns; give each as many");
      }
    } else if (d_model % g.heads != 0) {
      add(fmt::format(
          "input.one_for_all needs slices of one size, but {} heads do not divide d_model {}; use {} heads",
          g.heads, d_model, std::gcd(g.heads, d_model)));
    }
  }
  if (g.weights == HeadWeights::kDifferential &&
      (g.input.kind != Kind::kWholeRow || g.scores == Scores::kMerged ||
       g.scores == Scores::kCollaborative)) {
    add("differential weights need two queries and two keys a head, of the whole row; set input to whole_row "
        "and scores to query_key");
  }
  if (g.query_key_norm == QueryKeyNorm::kL2 && g.scores == Scores::kMerged) {
    add("query_key_norm scales queries and keys, of which merged scores have none of their own; set scores "
        "to query_key");
  }
  if (starts_equal(g.initialisation) && !g.input.one_for_all) {
    if (g.input.kind == Kind::kColumns && !equally_many(g.input.columns)) {
      add("heads that start equal must read equally many columns; give each as many, or use another "
          "initialisation");
    } else if ((g.input.kind == Kind::kSlices || g.input.kind == Kind::kProjectedSlices) &&
               d_model % g.heads != 0) {
      add(fmt::format(
          "heads that start equal must read equally many columns; use {} heads, or another initialisation",
          std::gcd(g.heads, d_model)));
    }
  }
  if (g.scores == Scores::kTied && shares) add("tied scores take the keys of every head; set key_heads to 0");
  if (g.scores == Scores::kMerged || g.scores == Scores::kCollaborative) {
    const char* name = g.scores == Scores::kMerged ? "merged" : "collaborative";
    if (shares)
      add(fmt::format("{} scores already share their keys; set key_heads and value_heads to 0", name));
  }
  if (g.scores == Scores::kMerged && d_model > kLargestHead) {
    add(fmt::format("merged scores make heads of d_model {}; the largest head is {}", d_model, kLargestHead));
  }
  if (g.shared_size != 0 && g.scores != Scores::kCollaborative) {
    add("shared_size is of collaborative scores; set it to 0 or scores to collaborative");
  }
  if (g.scores == Scores::kCollaborative) {
    const int64_t size = g.shared_size != 0 ? g.shared_size : int64_t{g.heads} * d_key;
    if (size < 1 || size > kLargestHead)
      add(fmt::format("shared_size is {}; expected 1 ... {}", size, kLargestHead));
  }
  if (g.output == HeadOutput::kConcatenation && int64_t{g.heads} * d_value != d_model) {
    add(fmt::format(
        "output is the concatenation of {} heads of {}, not d_model {}; use a projection or d_value {}",
        g.heads, d_value, d_model, std::max(1, d_model / g.heads)));
  }
  if (g.scale && !(std::isfinite(*g.scale)))
    add("scale is not a finite number; leave it unset for 1 / sqrt(d_key)");
  if (g.initialisation == HeadInitialisation::kCopiedKeys && (g.scores != Scores::kQueryKey || shares)) {
    add("initialisation copied_keys needs queries and keys of the same shape; set scores to query_key, "
        "key_heads to 0");
  }
  return found;
}

HeadGeometry completed(const HeadGeometry& geometry, int d_model, std::string_view layer) {
  if (const auto wrong = problems(geometry, d_model); !wrong.empty()) {
    throw UsageError(fmt::format("{}: {}", layer, fmt::join(wrong, "; ")));
  }
  HeadGeometry g = geometry;
  if (g.d_key == 0) g.d_key = d_model / (maps_per_head(g) * g.heads);
  if (g.d_value == 0) g.d_value = maps_per_head(g) * g.d_key;
  if (g.key_heads == 0) g.key_heads = g.heads;
  if (g.value_heads == 0) g.value_heads = g.key_heads;
  if (g.scores == Scores::kCollaborative && g.shared_size == 0) g.shared_size = g.heads * g.d_key;
  if (!g.scale) {
    constexpr double kTokens = 32;  // of a long sentence
    g.scale = g.query_key_norm == QueryKeyNorm::kL2
                  ? static_cast<float>(std::log2(kTokens * kTokens - kTokens))
                  : attention_scale(g.d_key);
  }
  return g;
}

int output_size(const HeadGeometry& geometry, int d_model, int d_out, std::string_view layer) {
  if (d_out == 0) return d_model;
  if (d_out < 0) throw UsageError(fmt::format("{}: d_out is {}; expected at least 1", layer, d_out));
  if (geometry.output == HeadOutput::kConcatenation && d_out != d_model) {
    throw UsageError(
        fmt::format("{}: d_out is {}, but the output is the concatenation of {} heads of {}; use a "
                    "projection or d_out {}",
                    layer, d_out, geometry.heads, geometry.d_value, d_model));
  }
  return d_out;
}

int maps_per_head(const HeadGeometry& geometry) {
  return geometry.weights == HeadWeights::kDifferential ? 2 : 1;
}

int key_size(const HeadGeometry& geometry, int d_model) {
  if (geometry.scores == Scores::kMerged) return d_model;
  return geometry.scores == Scores::kCollaborative ? geometry.shared_size : geometry.d_key;
}

}  // namespace mh
