#include "multihead/nn/head_geometry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/kernels/soft_cap.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/query_key_scheme.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

/// With the sizes that are 0 set to what they stand for. REQUIRES: heads divide d_model where d_key is 0.
HeadGeometry with_sizes(HeadGeometry g, int d_model) {
  const int maps = softmaxes_per_head(g);
  if (g.d_key == 0) g.d_key = d_model / (maps * g.heads);
  if (g.d_value == 0) g.d_value = static_cast<int>(std::min<int64_t>(int64_t{maps} * g.d_key, INT_MAX));
  if (g.key_heads == 0) g.key_heads = g.heads;
  if (g.value_heads == 0) g.value_heads = g.key_heads;
  scheme_of(g).complete(g);
  return g;
}

/// Calls visit(field, value) with the fields that some scores alone have.
template <class G, class Visit>
void for_own_fields(G& geometry, const Visit& visit) {
  HeadGeometry::describe(geometry, [&](const HeadField& field, auto& value, auto...) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, int>) {
      if (field.only) visit(field, value);
    }
  });
}

}  // namespace

std::vector<std::string> problems_of(const HeadGeometry& given, int d_model) {
  std::vector<std::string> found;
  const auto add = [&](std::string text) { found.push_back(std::move(text)); };
  if (d_model < 1) add(fmt::format("d_model is {}; expected at least 1", d_model));
  if (given.heads < 1) add(fmt::format("heads is {}; expected at least 1", given.heads));
  if (!found.empty()) return found;

  const int maps = softmaxes_per_head(given);
  if (given.d_key == 0 && d_model % (maps * given.heads) != 0) {
    add(fmt::format("heads is {}, {} does not divide d_model {}; set d_key, for example to {}", given.heads,
                    maps == 1 ? "which" : "twice which", d_model,
                    std::max(1, d_model / (maps * given.heads))));
    return found;
  }
  const HeadGeometry g = with_sizes(given, d_model);
  const auto check_size = [&](const char* name, int size) {
    if (size < 1 || size > kLargestHead)
      add(fmt::format("{} is {}; expected 1 ... {}", name, size, kLargestHead));
  };
  check_size("d_key", g.d_key);
  check_size("d_value", g.d_value);
  const auto check_sharing = [&](const char* name, int heads) {
    if (heads < 0 || (heads > 0 && (heads > g.heads || g.heads % heads != 0))) {
      add(fmt::format("{} is {}; expected a divisor of the {} heads, for example 1", name, heads, g.heads));
    }
  };
  check_sharing("key_heads", given.key_heads);
  check_sharing("value_heads", given.value_heads);

  const HeadScheme& scheme = scheme_of(g);
  scheme.find_problems(g, d_model, found);
  if (g.input.one_for_all && g.input.kind == HeadInput::Kind::kWholeRow) {
    add("input.one_for_all would make all heads that read the whole row the same; use slices");
  }
  for_own_fields(g, [&](const HeadField& field, int value) {
    if (*field.only == g.scores) return check_size(field.name, value);
    if (value == 0) return;
    add(fmt::format("{0} needs {1} scores; set it to 0 or scores to {1}", field.name,
                    name_of(*field.only, kScoresNames)));
  });
  weight_scheme_of(g).find_problems(g, scheme, found);
  query_key_scheme_of(g).find_problems(scheme, found);
  if (g.output == HeadOutput::kConcatenation && int64_t{g.heads} * g.d_value != d_model) {
    add(fmt::format(
        "output is the concatenation of {} heads of {}, not d_model {}; use a projection or d_value {}",
        g.heads, g.d_value, d_model, std::max(1, d_model / g.heads)));
  }
  if (g.scale && !(std::isfinite(*g.scale)))
    add("scale is not a finite number; leave it unset for 1 / sqrt(d_key)");
  if (g.soft_cap && !is_soft_cap(*g.soft_cap))
    add(fmt::format("soft_cap is {}; expected a positive number, for example 50, or leave it unset",
                    *g.soft_cap));
  if (g.initialisation == HeadInitialisation::kCopiedKeys && !(scheme.copies_queries() && has_own_keys(g))) {
    add("initialisation copied_keys needs queries and keys of the same shape; set scores to query_key, "
        "key_heads to 0");
  }
  return found;
}

HeadGeometry completed(const HeadGeometry& geometry, int d_model, std::string_view layer) {
  if (const auto wrong = problems_of(geometry, d_model); !wrong.empty()) {
    throw UsageError(fmt::format("{}: {}", layer, fmt::join(wrong, "; ")));
  }
  HeadGeometry g = with_sizes(geometry, d_model);
  if (!g.scale) g.scale = query_key_scheme_of(g).usual_scale(g.d_key);
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

int softmaxes_per_head(const HeadGeometry& geometry) {
  return weight_scheme_of(geometry).softmaxes();
}

HeadGeometry kernel_geometry(const HeadGeometry& geometry) {
  HeadGeometry g = geometry;
  g.heads *= softmaxes_per_head(geometry);
  g.key_heads *= softmaxes_per_head(geometry);
  return g;
}

int key_size(const HeadGeometry& geometry, int d_model) {
  return scheme_of(geometry).shape(geometry, d_model).d_key;
}

void clear_own_fields(HeadGeometry& geometry) {
  for_own_fields(geometry, [](const HeadField&, int& value) { value = 0; });
}

}  // namespace mh
