// Decoders whose config.json says that tokens see those behind them, too: encoders with a decoder's layers, such as EmbeddingGemma.
// tests/oracles/both_sides_goldens.py makes the states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/save_folder.h"
#include "multihead/models/encoder_model.h"
#include "tests/folders/families/damaged_golden.h"
#include "tests/folders/families/golden_model.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

const json kCausalNot{{"is_causal", false}}, kGemma{{"use_bidirectional_attention", true}};

struct BothSides {
  const char *family, *name, *states;
  json changes;
};

void PrintTo(const BothSides& of, std::ostream* to) {
  *to << of.family << " " << of.states;
}

class BothSidesGoldens : public testing::TestWithParam<BothSides> {
 protected:
  BothSidesGoldens() {
    changed.with([](json& config) { config.merge_patch(GetParam().changes); });
  }
  void expect_states(const ModelFolder& folder) const {
    const SafetensorsFile file =
        SafetensorsFile::open(std::filesystem::path(goldens_folder()) / GetParam().family /
                              (std::string(GetParam().name) + ".both_sides.golden.safetensors"));
    const auto& encoder = dynamic_cast<const EncoderModel&>(*folder.model);
    const Batch batch(test::golden_lists(file, "ids", "lengths"));
    Tape tape;
    Context context{.tape = tape};
    test::expect_near_golden(encoder.states(context, batch.view()).value(), file.floats(GetParam().states),
                             GetParam().states);
  }

  test::DamagedGolden changed{GetParam().family, GetParam().name};
};

TEST_P(BothSidesGoldens, StatesAreThoseOfTransformersAndStaySoWhenSaved) {
  const ModelFolder folder = load_model_folder(changed.folder);
  EXPECT_EQ(folder.model_type, GetParam().family);
  expect_states(folder);
  save_model_folder(changed.scratch / "saved", folder);
  expect_states(load_model_folder(changed.scratch / "saved"));
}

TEST_P(BothSidesGoldens, AreEncodersThatWriteNothing) {
  const ModelFolder folder = load_model_folder(changed.folder);
  EXPECT_EQ(folder.model->kind(), ModelKind::kEncoder);
  EXPECT_FALSE(folder.model->predicts());
  EXPECT_EQ(folder.model->attentions().at(1).name, "encoder.1.self_attention");
  EXPECT_THAT([&] { folder.causal_model(); },
              ThrowsMessage<UsageError>(HasSubstr("which reads a text instead of continuing it")));
}

INSTANTIATE_TEST_SUITE_P(Folders, BothSidesGoldens,
                         testing::Values(BothSides{"gemma3_text", "plain", "gemma", kGemma},
                                         BothSides{"gemma3_text", "plain", "causal", kCausalNot},
                                         BothSides{"gemma3_text", "plain", "both",
                                                   json{{"is_causal", false},
                                                        {"use_bidirectional_attention", true}}},
                                         BothSides{"gemma2", "capped", "causal", kCausalNot},
                                         BothSides{"llama", "tied_grouped", "causal", kCausalNot},
                                         BothSides{"mistral", "window", "causal", kCausalNot},
                                         BothSides{"olmo2", "plain", "causal", kCausalNot},
                                         BothSides{"phi3", "grouped", "causal", kCausalNot},
                                         BothSides{"qwen2", "some_windows", "causal", kCausalNot},
                                         BothSides{"qwen3", "tied", "causal", kCausalNot},
                                         BothSides{"smollm3", "windows_bf16", "causal", kCausalNot}),
                         [](const auto& of) { return std::string(of.param.family) + "_" + of.param.states; });

// A class that does not read a key would leave the text unseen behind it, and what the file says is not done.
TEST(BothSides, KeysThatTransformersDoesNotObeyAreRefused) {
  for (const auto& [family, name] : {std::pair{"gemma2", "capped"}, {"llama", "tied_grouped"}}) {
    const test::DamagedGolden damaged(family, name);
    damaged.with("use_bidirectional_attention", true,
                 "use_bidirectional_attention is true; expected a decoder");
    damaged.with("is_causal", "no", "is_causal: expected true or false");
  }
  const test::DamagedGolden gpt_neox("gpt_neox", "parallel"), gemma("gemma3_text", "plain");
  gpt_neox.with("is_causal", false, "is_causal is false; expected a decoder");
  gemma.with("use_bidirectional_attention", 1, "use_bidirectional_attention: expected true or false");
  gemma.with([](json& config) {
    config["use_bidirectional_attention"] = true;
    config["sliding_window"] = 1;
  });
  gemma.expect_error("window is 0; expected 1");
  gemma.with("is_causal", nullptr, "is_causal: expected true or false, got null");
  gemma.with([](json& config) { config["use_bidirectional_attention"] = nullptr; });
  EXPECT_EQ(load_model_folder(gemma.folder).model->kind(), ModelKind::kCausal);
}

}  // namespace
}  // namespace mh
