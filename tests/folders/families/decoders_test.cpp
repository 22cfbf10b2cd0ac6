// Folders that the classes of nine families of decoders wrote, and what transformers computed with them in double precision.
// tests/oracles/decoder_goldens.py makes both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/save_folder.h"
#include "multihead/nn/multi_head_attention.h"
#include "tests/folders/families/causal_goldens.h"
#include "tests/folders/families/damaged_golden.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

struct DecoderName {
  const char *family, *name;
};

class DecoderGoldens : public testing::TestWithParam<DecoderName> {
 protected:
  test::GoldenModel golden{GetParam().family, GetParam().name};
  ModelFolder folder = load_model_folder(golden.folder);
};

// One batch of sequences of 1, 2 and 127 tokens and of the model's longest.
TEST_P(DecoderGoldens, StatesAndLogitsAreThoseOfTransformers) {
  EXPECT_EQ(folder.model_type, GetParam().family);
  EXPECT_EQ(static_cast<int32_t>(golden.sequences.back().size()), folder.model->facts().max_positions);
  test::expect_states_and_logits(folder.language_model(), golden);
}

TEST_P(DecoderGoldens, ReadingInPartsAgainstTheCacheGivesTheSameStates) {
  test::expect_same_in_parts(folder.language_model(), golden, {1, 2, 5, 126}, 4e-5);
}

TEST_P(DecoderGoldens, HeadsAreSeenAndMuted) {
  test::expect_heads_seen_and_muted(folder.language_model(), golden);
}

// Parts of fused tensors go back to where they were, and gains lose their 1.
TEST_P(DecoderGoldens, WhatIsSavedIsReadAgainAndHasTheSameTensors) {
  const test::ScratchFolder scratch;
  save_model_folder(scratch / "saved", folder);
  const ModelFolder again = load_model_folder(scratch / "saved");
  test::expect_states_and_logits(again.language_model(), golden);
  const SafetensorsFile before = SafetensorsFile::open(golden.folder / "model.safetensors"),
                        after = SafetensorsFile::open(scratch / "saved" / "model.safetensors");
  ASSERT_EQ(before.names(), after.names());
  for (const std::string& name : before.names()) {
    EXPECT_EQ(before.shape(name), after.shape(name)) << name;
    const std::vector<float> numbers = before.floats(name), saved = after.floats(name);
    // 1 + w and back again: up to half a unit in the last place of 1 + w.
    const float within = name.find("norm") != std::string::npos ? 2.4e-7f : 0;
    for (size_t i = 0; i < numbers.size(); ++i) ASSERT_NEAR(saved[i], numbers[i], within) << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Folders, DecoderGoldens,
    testing::Values(DecoderName{"gemma2", "capped"}, DecoderName{"gemma2", "scores_capped_bf16"},
                    DecoderName{"gemma2", "logits_capped"}, DecoderName{"gemma3_text", "plain"},
                    DecoderName{"gemma3_text", "pattern_bf16"}, DecoderName{"gpt_neo", "windows"},
                    DecoderName{"gpt_neo", "wide_f16"}, DecoderName{"gpt_neox", "parallel"},
                    DecoderName{"gpt_neox", "sequential_bf16"}, DecoderName{"olmo2", "plain"},
                    DecoderName{"olmo2", "grouped_yarn_bf16"}, DecoderName{"opt", "before"},
                    DecoderName{"opt", "after_bf16"}, DecoderName{"phi", "plain"},
                    DecoderName{"phi", "grouped_bf16"}, DecoderName{"phi3", "grouped"},
                    DecoderName{"phi3", "longrope_bf16"}, DecoderName{"smollm3", "some_turn"},
                    DecoderName{"smollm3", "windows_bf16"}),
    [](const auto& of) { return std::string(of.param.family) + "_" + of.param.name; });

}  // namespace
}  // namespace mh
