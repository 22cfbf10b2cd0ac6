// AdapterConfig: adapter_config.json, with which peft says what its adapter is (folders/adapter.h). Of its kinds LoRA is read
// (Hu et al. 2021), with these options; any other option that changes numbers is refused by its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/folders/name_pattern.h"

namespace mh {

/// Names of modules, such as "encoder.layer.0.attention.self.query": those that end with one of `ends`, or that `pattern`
/// matches as a whole.
struct ModuleNames {
  std::vector<std::string> ends = {};
  std::vector<NamePattern> pattern = {};  // none or one
  bool contain(std::string_view module) const;
};

/// A value of its own for the modules that a pattern matches.
using ModuleValues = std::vector<std::pair<NamePattern, double>>;

struct AdapterConfig {
  double rank = 8, alpha = 8;
  ModuleValues rank_pattern = {}, alpha_pattern = {};
  bool root_of_rank = false;            // use_rslora
  bool every_module = false;            // target_modules is "all-linear": those of which there are tensors
  ModuleNames target = {};              // target_modules
  ModuleNames excluded = {};            // exclude_modules
  std::vector<std::string> saved = {};  // modules_to_save, which are replaced as a whole
  std::vector<int32_t> layers = {};     // layers_to_transform: only these; empty: all
  std::vector<NamePattern> before_layer = {};  // layers_pattern: what comes before the layer's number

  /// Whether peft puts LoRA on this module.
  bool adapts(std::string_view module) const;
  /// What B A is multiplied by: alpha / rank, or alpha / sqrt(rank) with use_rslora.
  double scale_of(std::string_view module) const;
  double rank_of(std::string_view module) const;
};

/// Throws FormatError that starts with `name`: no LoRA, options that are refused.
AdapterConfig read_adapter_config(std::string_view json, std::string_view name);

}  // namespace mh
