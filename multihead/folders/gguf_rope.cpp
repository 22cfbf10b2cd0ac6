#include "multihead/folders/gguf_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/gguf_config.h"
#include "multihead/io/strict_json.h"
#include "multihead/kernels/rotary.h"

namespace mh {
namespace {

using nlohmann::ordered_json;

constexpr const char *kFrequencies = "rope_freqs.weight", *kLong = "rope_factors_long.weight",
                     *kShort = "rope_factors_short.weight";

/// How far the positions of one file are scaled.
class RopeScaling {
 public:
  RopeScaling(const GgufFile& file, const GgufArchitecture& architecture, int64_t turned, double base)
      : file_(file), architecture_(architecture), turned_(turned), base_(base) {}

  ordered_json read(const ordered_json& config) const {
    const std::string key = architecture_.key("rope.scaling.type");
    const std::string_view type = file_.text(key).value_or("none");
    const bool by_factors = architecture_.rope_factors && type == "longrope";
    const bool by_turns = !architecture_.rope_factors && type == "yarn";  // Phi-3's yarn is its longrope
    if (type != "none" && type != "linear" && !by_factors && !by_turns)
      fail(fmt::format("\"{}\": expected \"none\", \"linear\" or \"{}\", got {}", key,
                       architecture_.rope_factors ? "longrope" : "yarn", json_excerpt(std::string(type))));
    const auto only = [&](const char* tensor) {
      if (type == "linear" || by_turns)
        fail(fmt::format("tensor \"{}\" and a scaling of type {}", tensor, type));
    };
    if (architecture_.rope_factors && file_.tensor(kLong) != nullptr) {
      only(kLong);
      return long_factors(config);
    }
    if (by_factors) fail(fmt::format("\"{}\" is \"longrope\", but tensor \"{}\" is missing", key, kLong));
    if (file_.tensor(kFrequencies) != nullptr) {
      only(kFrequencies);
      return llama3();
    }
    return by_turns ? yarn() : linear(type);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(fmt::format("{}: {}", file_.name(), what));
  }

  /// By how much each pair that turns is slower; `least` is the least that this may be.
  std::vector<float> slower(const char* tensor, float least, const char* expected) const {
    const GgufTensor* const found = file_.tensor(tensor);
    const auto refuse = [&](const std::string& what) {
      fail(fmt::format("tensor \"{}\" {}; expected {}", tensor, what, expected));
    };
    if (found == nullptr) refuse("is missing");
    if (found->elements() != turned_ / 2) refuse("has not one number for each pair of a head's numbers");
    std::vector<float> numbers = file_.floats(*found);
    if (!std::all_of(numbers.begin(), numbers.end(), [&](float x) { return x >= least && x <= 1e6f; }))
      refuse(fmt::format("has a number below {} or above 1000000", least));
    return numbers;
  }

  /// Llama 3's scaling has no keys in GGUF. Instead the tensor rope_freqs.weight says by how much pair i turns
  /// more slowly. Returns the rope_scaling that gives the same.
  ordered_json llama3() const {
    constexpr const char* kExpected = "Llama 3's scaling of positions";
    const std::vector<float> found = slower(kFrequencies, 1, kExpected);
    const float factor = *std::max_element(found.begin(), found.end());
    if (factor == 1) return nullptr;
    const std::string key = architecture_.key("rope.scaling.original_context_length");
    const RotaryScaling scaling{
        .kind = RotaryScaling::Kind::kLlama3,
        .factor = factor,
        .original_positions = static_cast<int32_t>(file_.integer(key, 1, 1 << 20).value_or(8192))};
    const int turned = static_cast<int>(turned_);
    for (int i = 0; i < turned / 2; ++i) {
      const double expected = rotary_speed(i, turned, base_) / rotary_speed(i, turned, base_, scaling);
      if (!(std::abs(found[static_cast<size_t>(i)] / expected - 1) < 1e-4))
        fail(fmt::format("tensor \"{}\" is another scaling; expected {}", kFrequencies, kExpected));
    }
    return {{"rope_type", "llama3"},
            {"factor", scaling.factor},
            {"low_freq_factor", scaling.low_turns},
            {"high_freq_factor", scaling.high_turns},
            {"original_max_position_embeddings", scaling.original_positions}};
  }

  /// Phi-3's: factors for texts within the original length, and for longer ones. The attention is scaled by what follows from
  /// both lengths, which must be what the file says.
  ordered_json long_factors(const ordered_json& config) const {
    const std::string key = architecture_.key("rope.scaling.original_context_length");
    const double original = static_cast<double>(gguf_required(file_, key, file_.integer(key, 2, 1 << 20)));
    const double longer = config["max_position_embeddings"].get<double>() / original;
    const double scale = longer > 1 ? std::sqrt(1 + std::log(longer) / std::log(original)) : 1;
    const std::string attention = architecture_.key("rope.scaling.attn_factor");
    if (const auto said = file_.number(attention, 1e-3, 1e3); said && std::abs(*said / scale - 1) > 1e-4)
      fail(fmt::format("\"{}\" is {}; expected {:.6g}, which follows from the lengths", attention,
                       file_.described(attention), scale));
    const auto factors = [&](const char* tensor) {
      ordered_json list = ordered_json::array();
      for (const float factor : slower(tensor, 1e-3f, "Phi-3's scaling of positions"))
        list.push_back(gguf_shortest(factor));
      return list;
    };
    ordered_json scaling = {{"type", "longrope"}};
    scaling["short_factor"] = factors(kShort);
    scaling["long_factor"] = factors(kLong);
    return scaling;
  }

  /// Fields that are missing have the same values in llama.cpp and in transformers. What llama.cpp calls extrapolation factor is how
  /// much of YaRN there is.
  ordered_json yarn() const {
    const std::string factor = architecture_.key("rope.scaling.factor"),
                      whole = architecture_.key("rope.scaling.yarn_ext_factor");
    if (const auto said = file_.number(whole, -1e3, 1e3); said && *said >= 0 && *said != 1)
      fail(fmt::format("\"{}\" is {}; expected 1", whole, file_.described(whole)));
    ordered_json scaling = {
        {"rope_type", "yarn"},
        {"factor", gguf_shortest(gguf_required(file_, factor, file_.number(factor, 1e-3, 1e6)))}};
    const std::string original = architecture_.key("rope.scaling.original_context_length");
    if (const auto said = file_.integer(original, 1, 1 << 20))
      scaling["original_max_position_embeddings"] = *said;
    const auto add = [&](const char* name, const char* field) {
      const auto said = file_.number(architecture_.key(name), 1e-3, 1e6);
      if (said) scaling[field] = gguf_shortest(*said);
      return said.has_value();
    };
    add("rope.scaling.yarn_attn_factor", "attention_factor");
    add("rope.scaling.yarn_beta_fast", "beta_fast");
    add("rope.scaling.yarn_beta_slow", "beta_slow");
    if (add("rope.scaling.yarn_log_multiplier", "mscale_all_dim")) scaling["mscale"] = 1.0;
    return scaling;
  }

  ordered_json linear(std::string_view type) const {
    // Before "scaling.type" there was "scale_linear".
    const auto older = file_.number(architecture_.key("rope.scale_linear"), 1e-3, 1e6);
    if (type == "none" && older.value_or(1) == 1) return nullptr;
    const std::string key = architecture_.key("rope.scaling.factor");
    const double factor = older ? *older : gguf_required(file_, key, file_.number(key, 1e-3, 1e6));
    return {{"rope_type", "linear"}, {"factor", gguf_shortest(factor)}};
  }

  const GgufFile& file_;
  const GgufArchitecture& architecture_;
  int64_t turned_;
  double base_;
};

}  // namespace

void add_gguf_rope(const GgufFile& file, const GgufArchitecture& architecture, int64_t d_head,
                   ordered_json& config) {
  const std::string key = architecture.key("rope.dimension_count");
  const int64_t turned = file.integer(key, 1, 1024).value_or(d_head);
  const bool in_part = architecture.rotated_share_field != nullptr;
  if (in_part ? turned > d_head : turned != d_head)
    throw FormatError(fmt::format("{}: \"{}\" is {}; expected {}{}, the size of a head", file.name(), key,
                                  turned, in_part ? "at most " : "", d_head));
  if (turned % 2 != 0)
    throw FormatError(fmt::format("{}: heads {} {} numbers; rotary positions need pairs", file.name(),
                                  in_part ? "that turn" : "of", turned));
  const double base = file.number(architecture.key("rope.freq_base"), 1e-3, 1e12).value_or(10000);
  config[architecture.rope_base_field] = gguf_shortest(base);
  if (in_part && (turned != d_head || !architecture.rope_factors))
    config[architecture.rotated_share_field] = static_cast<double>(turned) / static_cast<double>(d_head);
  config["rope_scaling"] = RopeScaling(file, architecture, turned, base).read(config);
}

}  // namespace mh
