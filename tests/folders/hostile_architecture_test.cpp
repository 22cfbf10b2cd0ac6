// GGUF files of architectures besides llama whose metadata asks for what is not supported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/folders/gguf_config.h"
#include "multihead/folders/gguf_keys.h"
#include "multihead/io/gguf.h"
#include "tests/folders/gguf_case.h"
#include "tests/io/hostile.h"

namespace mh {
namespace {

using namespace test;
using testing::ElementsAre;

class HostileArchitecture : public testing::Test {
 protected:
  /// The small Llama with another architecture.
  static GgufSpec small(const std::string& architecture) {
    GgufSpec spec = small_gguf();
    for (auto& [key, value] : spec.values) {
      if (key.starts_with("llama.")) key = architecture + key.substr(5);
    }
    spec.value("general.architecture") = gguf_string(architecture);
    return spec;
  }
  static void refused(const std::string& architecture, const std::function<void(GgufSpec&)>& change,
                      std::string_view part) {
    GgufSpec spec = small(architecture);
    change(spec);
    const GgufFile file = GgufFile::from_bytes(spec.bytes(), "small.gguf");
    expect_one_line_error(
        [&] {
          gguf_config_json(file);
          gguf_remarks(file);
        },
        part, part);
  }
  static void value(const std::string& architecture, const std::string& key, std::string bytes,
                    std::string_view part) {
    refused(
        architecture, [&](GgufSpec& spec) { spec.value(architecture + key) = std::move(bytes); }, part);
  }
  static GgufTensorSpec factors(const char* name, std::vector<float> numbers) {
    std::string data;
    for (const float number : numbers) data += little_endian(number);
    return {.name = name, .sizes = {numbers.size()}, .data = data};
  }
};

TEST_F(HostileArchitecture, MetadataThatCannotBe) {
  value("qwen2", ".attention.causal", gguf_bool(0),
        "qwen2.attention.causal is false; it is not supported in GGUF");
  value("qwen2", ".rope.scaling.type", gguf_string("longrope"),
        "expected \"none\", \"linear\" or \"yarn\", got \"longrope\"");
  value("phi3", ".rope.scaling.type", gguf_string("yarn"),
        "expected \"none\", \"linear\" or \"longrope\", got \"yarn\"");
  value("qwen3", ".rope.dimension_count", gguf_u32(2),
        "\"qwen3.rope.dimension_count\" is 2; expected 4, the size");
  value("qwen3", ".expert_count", gguf_u32(8), "\"qwen3.expert_count\" is above 0");
  value("gemma2", ".attn_logit_softcapping", gguf_f32(0),
        "\"gemma2.attn_logit_softcapping\": expected a number");
  value("gemma3", ".attention.sliding_window", gguf_string("4"),
        "\"gemma3.attention.sliding_window\": expected");
  value("olmo2", ".attention.sliding_window", gguf_u32(4),
        "\"olmo2.attention.sliding_window\" is 4; layers with windows");
  value("phi3", ".rope.dimension_count", gguf_u32(6),
        "\"phi3.rope.dimension_count\" is 6; expected at most 4");
  value("phi3", ".rope.dimension_count", gguf_u32(3),
        "heads that turn 3 numbers; rotary positions need pairs");
  value("phi3", ".rope.scaling.type", gguf_string("longrope"),
        "tensor \"rope_factors_long.weight\" is missing");
  value("gptneox", ".attention.layer_norm_epsilon", gguf_f32(1e-5f),
        "\"gptneox.attention.head_count_kv\" is 1; expected 3, one for each head");
}

TEST_F(HostileArchitecture, FactorsThatCannotBe) {
  const auto with = [](std::vector<float> longer, std::vector<float> shorter, uint32_t original) {
    return [=](GgufSpec& spec) {
      spec.value("phi3.rope.scaling.original_context_length") = gguf_u32(original);
      spec.value("phi3.rope.scaling.attn_factor") = gguf_f32(1.5f);
      if (!longer.empty()) spec.tensors.push_back(factors("rope_factors_long.weight", longer));
      if (!shorter.empty()) spec.tensors.push_back(factors("rope_factors_short.weight", shorter));
    };
  };
  // The square root of 1 + log(17 / 4) / log(4).
  refused("phi3", with({2, 3}, {1, 1}, 4), "\"phi3.rope.scaling.attn_factor\" is 1.5; expected 1.42959");
  refused("phi3", with({2, 3}, {}, 17), "\"phi3.rope.scaling.attn_factor\" is 1.5; expected 1,");
  refused(
      "phi3",
      [&](GgufSpec& spec) {
        with({2, 3}, {}, 17)(spec);
        spec.erase("phi3.rope.scaling.attn_factor");
      },
      "tensor \"rope_factors_short.weight\" is missing");
  refused(
      "phi3",
      [&](GgufSpec& spec) {
        with({2, 3}, {1, 0}, 17)(spec);
        spec.erase("phi3.rope.scaling.attn_factor");
      },
      "\"rope_factors_short.weight\" has a number below 0.001 or above 1000000");
  refused(
      "phi3",
      [&](GgufSpec& spec) {
        with({2, 3, 4}, {1, 1}, 17)(spec);
        spec.erase("phi3.rope.scaling.attn_factor");
      },
      "has not one number for each pair");
}

TEST_F(HostileArchitecture, KeysThatAreNotObeyedAreNamed) {
  GgufSpec spec = small("qwen2");
  spec.value("qwen2.attention.sliding_window") = gguf_u32(4);
  spec.value("llama.attention.sliding_window") = gguf_u32(4);  // of no interest to qwen2
  EXPECT_THAT(gguf_remarks(GgufFile::from_bytes(spec.bytes(), "small.gguf")),
              ElementsAre("small.gguf: qwen2.attention.sliding_window is not known here and was not used"));
}

}  // namespace
}  // namespace mh
