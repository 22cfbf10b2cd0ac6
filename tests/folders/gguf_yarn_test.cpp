// YaRN of a GGUF file: the same positions as a config.json with the same numbers has.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "multihead/base/file.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/causal_model.h"
#include "tests/folders/gguf_case.h"
#include "tests/io/hostile.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using namespace test;

TEST(GgufYarn, IsReadAsConfigJsonSaysIt) {
  const ScratchFolder scratch;
  const auto load = [&](const GgufSpec& file) {
    write_file_atomically(scratch / "small.gguf", file.bytes());
    return load_model_folder(scratch / "small.gguf");
  };
  GgufSpec spec = small_gguf();
  spec.value("llama.rope.scaling.type") = gguf_string("yarn");
  spec.value("llama.rope.scaling.factor") = gguf_f32(4);
  const auto rotary = [](const ModelFolder& folder) {
    return dynamic_cast<const CausalModel&>(*folder.model).config().stack.rotary;
  };
  const auto expect = [&](double amplitude, RotaryScaling scaling) {
    scaling.kind = RotaryScaling::Kind::kYarn, scaling.factor = 4;
    const ModelFolder found = load(spec);
    RotaryOptions read = rotary(found);
    EXPECT_NEAR(read.scaling.amplitude, amplitude, 1e-12);
    scaling.amplitude = read.scaling.amplitude;
    EXPECT_TRUE(read.scaling == scaling);
    EXPECT_EQ(read.base, 1000);
    const ScratchFolder saved;
    save_model_folder(saved / "folder", found);
    EXPECT_TRUE(rotary(load_model_folder(saved / "folder")) == read);
  };
  const double usual = 1 + 0.1 * std::log(4.0);
  expect(usual, {.low_turns = 1, .high_turns = 32, .original_positions = 17});
  spec.value("llama.rope.scaling.original_context_length") = gguf_u32(5);
  spec.value("llama.rope.scaling.yarn_ext_factor") = gguf_f32(1);
  spec.value("llama.rope.scaling.yarn_beta_fast") = gguf_f32(8);
  spec.value("llama.rope.scaling.yarn_beta_slow") = gguf_f32(0.5f);
  expect(usual, {.low_turns = 0.5, .high_turns = 8, .original_positions = 5});
  spec.value("llama.rope.scaling.yarn_log_multiplier") = gguf_f32(0.5f);
  expect(usual / (1 + 0.05 * std::log(4.0)), {.low_turns = 0.5, .high_turns = 8, .original_positions = 5});
  spec.value("llama.rope.scaling.yarn_attn_factor") = gguf_f32(1.25f);
  expect(1.25, {.low_turns = 0.5, .high_turns = 8, .original_positions = 5});

  const auto wrong = [&](const char* key, std::string bad, const char* words) {
    GgufSpec other = spec;
    other.value(key) = std::move(bad);
    expect_one_line_error([&] { load(other); }, words, key);
  };
  wrong("llama.rope.scaling.yarn_ext_factor", gguf_f32(0.5f),
        "\"llama.rope.scaling.yarn_ext_factor\" is 0.5; expected 1");
  wrong("llama.rope.scaling.yarn_beta_slow", gguf_f32(9), "beta_slow is 9; expected less than beta_fast, 8");
  wrong("llama.rope.scaling.yarn_attn_factor", gguf_f32(0), "expected a number from");
  spec.erase("llama.rope.scaling.factor");
  expect_one_line_error([&] { load(spec); }, "\"llama.rope.scaling.factor\" is missing", "no factor");
}

}  // namespace
}  // namespace mh
