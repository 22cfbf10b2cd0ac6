// The flags that describe the heads of a layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/setting_flags.h"
#include "multihead/models/head_changes.h"

namespace mh::cli {

/// A layer, described.
struct LayerSettings {
  int32_t d_model = 512, heads = 8;
  HeadChanges head_changes;
  std::optional<int32_t> d_out;

  template <class V>
  void visit(V& v) {
    constexpr const char* kHeads = "Heads";
    v("d_model", d_model, kModelWidths,
      {.group = kHeads, .help = "Width of the layer's input: numbers per token"});
    v("heads", heads, kHeadCounts, {.group = kHeads, .help = "Number of heads (of queries)"});
    head_changes.visit(v);
    v("d_out", d_out, kModelWidths,
      {.group = kHeads, .help = "Width of the layer's output, which W^O writes", .otherwise = "d_model"});
  }
};

class GeometryFlags {
 public:
  explicit GeometryFlags(LayerSettings usual = {}) : layer_(std::move(usual)) {}
  /// --geometry, and a flag for each of LayerSettings; most are left to --help-all.
  void add(Verb& verb);
  /// After parsing: takes what was given.
  void take() { flags_.take(layer_); }
  /// But for --geometry.
  std::vector<std::string> names() const { return flags_.names(); }

  std::string geometry = "canonical";  // a name, a .json file, or JSON itself
  const LayerSettings& layer() const { return layer_; }
  int d_out() const { return layer_.d_out.value_or(0); }
  /// What is described, but for --d-out; `named` in the place of --geometry. Throws UsageError, FileError,
  /// FormatError.
  HeadGeometry described(const std::string& named) const;
  HeadGeometry described() const { return described(geometry); }

 private:
  LayerSettings layer_;
  SettingFlags flags_;
};

}  // namespace mh::cli
