#include "multihead/nn/head_geometry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/kernels/attention.h"

namespace mh {
namespace {

constexpr int kLargestHead = 1024;  // the kernel's

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

  if (g.d_key == 0 && d_model % g.heads != 0) {
    add(fmt::format("heads is {}, which does not divide d_model {}; set d_key, for example to {}", g.heads,
                    d_model, std::max(1, d_model / g.heads)));
    return found;
  }
  const int d_key = g.d_key != 0 ? g.d_key : d_model / g.heads;
  const int d_value = g.d_value != 0 ? g.d_value : d_key;
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
      const auto differs = [&](const auto& head) { return head.size() != g.input.columns[0].size(); };
      if (std::any_of(g.input.columns.begin(), g.input.columns.end(), differs)) {
        add("input.one_for_all needs heads that read equally many columns; give each as many");
      }
    } else if (d_model % g.heads != 0) {
      add(fmt::format(
          "input.one_for_all needs slices of one size, but {} heads do not divide d_model {}; use {} heads",
          g.heads, d_model, std::gcd(g.heads, d_model)));
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
  if (g.d_key == 0) g.d_key = d_model / g.heads;
  if (g.d_value == 0) g.d_value = g.d_key;
  if (g.key_heads == 0) g.key_heads = g.heads;
  if (g.value_heads == 0) g.value_heads = g.key_heads;
  if (g.scores == Scores::kCollaborative && g.shared_size == 0) g.shared_size = g.heads * g.d_key;
  if (!g.scale) g.scale = attention_scale(g.d_key);
  return g;
}

int key_size(const HeadGeometry& geometry, int d_model) {
  if (geometry.scores == Scores::kMerged) return d_model;
  return geometry.scores == Scores::kCollaborative ? geometry.shared_size : geometry.d_key;
}

namespace {

struct Preset {
  GeometryName name;
  HeadGeometry (*make)(int heads, int d_model);
};

HeadGeometry bloem(int heads, int d_model, HeadInput input, HeadOutput output) {
  return {.heads = heads,
          .input = std::move(input),
          .biases = Biases::kNone,
          .output = output,
          .scale = attention_scale(d_model)};
}

const std::array kPresets = {
    Preset{{"canonical", "every head reads the whole row (Vaswani et al. 2017)"},
           [](int h, int) { return HeadGeometry{.heads = h}; }},
    Preset{{"tensor2tensor", "canonical without biases"},
           [](int h, int) { return HeadGeometry{.heads = h, .biases = Biases::kNone}; }},
    Preset{{"bloem-narrow-shared", "slices, one s x s projection for all heads, no W^O"},
           [](int h, int d) { return bloem(h, d, HeadInput::slices(true), HeadOutput::kConcatenation); }},
    Preset{{"bloem-narrow", "slices, an s x s projection for each head, no W^O"},
           [](int h, int d) { return bloem(h, d, HeadInput::slices(), HeadOutput::kConcatenation); }},
    Preset{{"bloem-narrow-output", "slices, an s x s projection for each head, and W^O"},
           [](int h, int d) { return bloem(h, d, HeadInput::slices(), HeadOutput::kProjection); }},
    Preset{{"bloem-wide", "every head as wide as the row, d_key = d_model"},
           [](int h, int d) {
             HeadGeometry g = bloem(h, d, {}, HeadOutput::kProjection);
             g.d_key = g.d_value = d;
             return g;
           }},
    Preset{{"bloem-fourth", "d x d first, then slices with an s x s projection for each head"},
           [](int h, int d) { return bloem(h, d, HeadInput::projected_slices(), HeadOutput::kProjection); }},
    Preset{{"aggcn", "canonical, W^K starts as a copy of W^Q (Guo et al. 2019)"},
           [](int h, int) {
             return HeadGeometry{.heads = h, .initialisation = HeadInitialisation::kCopiedKeys};
           }},
    Preset{{"tied", "W^K is W^Q: scores are symmetric"},
           [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kTied}; }},
    Preset{{"merged", "one matrix W_i for W_i^Q W_i^K^T"},
           [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kMerged}; }},
    Preset{{"doubled", "x W^Q W_i^Q: another d x d before each head's"},
           [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kDoubled}; }},
    Preset{{"collaborative", "shared W^Q and W^K, a mixing vector a head (Cordonnier et al. 2020)"},
           [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kCollaborative}; }},
    Preset{{"multi-query", "all heads share one head of keys and values (Shazeer 2019)"},
           [](int h, int) { return HeadGeometry{.heads = h, .key_heads = 1}; }},
    Preset{{"grouped-query", "pairs of heads share keys and values (Ainslie et al. 2023)"},
           [](int h, int) { return HeadGeometry{.heads = h, .key_heads = h % 2 == 0 ? h / 2 : h}; }},
};

}  // namespace

HeadGeometry geometry_preset(std::string_view name, int heads, int d_model) {
  std::string names;
  for (const Preset& preset : kPresets) {
    if (preset.name.name == name) return preset.make(heads, d_model);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", preset.name.name);
  }
  throw UsageError(fmt::format("geometry '{}' is unknown; choose one of {}", name, names));
}

std::vector<GeometryName> geometry_names() {
  std::vector<GeometryName> names;
  for (const Preset& preset : kPresets) names.push_back(preset.name);
  return names;
}

}  // namespace mh
