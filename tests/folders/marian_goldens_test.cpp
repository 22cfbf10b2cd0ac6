// Models that MarianMTModel.save_pretrained wrote, and what transformers computed with them in double
// precision. tests/oracles/marian_goldens.py makes both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/folders/families/translator_golden.h"
#include "tests/models/small_batch.h"
#include "tests/support/places.h"

namespace mh {
namespace {

constexpr int kNewTokens = 11;
const std::filesystem::path kFolder = std::filesystem::path(goldens_folder()) / "marian";

struct Golden : test::TranslatorGolden {
  explicit Golden(const std::string& name) : TranslatorGolden("marian", name) {}
};

class MarianGoldens : public testing::TestWithParam<const char*> {};

TEST_P(MarianGoldens, LogitsAreThoseOfTransformers) {
  const Golden golden(GetParam());
  const ModelFolder folder = load_model_folder(kFolder / GetParam());
  const auto found = test::logits_of(folder.translator(), golden.source, golden.target_in);
  const auto expected = golden.file.floats("logits");
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4) << i;
}

TEST_P(MarianGoldens, GreedyTranslationsAreThoseOfTransformers) {
  const Golden golden(GetParam());
  const ModelFolder folder = load_model_folder(kFolder / GetParam());
  EXPECT_THAT(folder.generation.suppressed, testing::ElementsAre(folder.translator().config().pad_id));
  EXPECT_EQ(test::greedy(folder.translator(), golden.source, kNewTokens, folder.generation.suppressed),
            golden.lists("greedy"));
}

TEST_P(MarianGoldens, LogProbabilitiesFollowFromTheLogits) {
  const Golden golden(GetParam());
  const ModelFolder folder = load_model_folder(kFolder / GetParam());
  expect_log_probabilities_of(folder.translator(), golden);
}

// Saved again, a model has the same tensors under the same names, and config.json says the same.
TEST_P(MarianGoldens, SavedAgainTheyAreTheSame) {
  const test::ScratchFolder scratch;
  const ModelFolder folder = load_model_folder(kFolder / GetParam());
  save_model_folder(scratch / "again", folder.translator());

  const auto before = SafetensorsFile::open(kFolder / GetParam() / "model.safetensors");
  const auto after = SafetensorsFile::open(scratch / "again" / "model.safetensors");
  for (const TensorEntry& entry : after.entries()) {
    // Here an untied model keeps three embeddings, so one that was tied to another gets its copy written.
    const std::string name = before.contains(entry.name) ? entry.name : "model.decoder.embed_tokens.weight";
    EXPECT_TRUE(entry.name == name || entry.name == "lm_head.weight") << entry.name;
    EXPECT_EQ(entry.shape, before.shape(name)) << entry.name;
    EXPECT_EQ(after.floats(entry.name), before.floats(name)) << entry.name;
  }
  for (const std::string& name : before.names()) EXPECT_TRUE(after.contains(name)) << name;

  const auto json_of = [](const std::filesystem::path& path) {
    return nlohmann::json::parse(read_file(path));
  };
  auto expected = json_of(kFolder / GetParam() / "config.json"),
       found = json_of(scratch / "again" / "config.json");
  for (const char* key : {"bos_token_id", "init_std", "is_decoder", "transformers_version", "dtype"})
    expected.erase(key);
  if (!after.contains("lm_head.weight") || before.contains("lm_head.weight")) {
    EXPECT_EQ(found["tie_word_embeddings"], expected["tie_word_embeddings"]);
  } else {
    EXPECT_EQ(found["tie_word_embeddings"], false);
  }
  expected.erase("tie_word_embeddings");
  if (expected["activation_function"] == "silu") expected["activation_function"] = "swish";
  for (const auto& [key, value] : expected.items()) {
    if (value.is_number_float()) {
      EXPECT_NEAR(found[key].get<double>(), value.get<double>(), 1e-7) << key;
    } else {
      EXPECT_EQ(found[key], value) << key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MarianGoldens,
                         testing::Values("relu", "gelu_f16", "swish_bf16_separate", "silu_untied",
                                         "gradients"));

TEST(MarianGradients, EveryParametersGradientIsThatOfTorch) {
  const Golden golden("gradients");
  const ModelFolder folder = load_model_folder(kFolder / "gradients");
  Tape tape(Tape::Mode::kRecord);
  Context context{.tape = tape};
  VocabularyScratch scratch;
  const auto loss =
      folder.translator().loss(context, golden.source.view(), golden.target_in.view(), golden.target_out.ids,
                               {.label_smoothing = 0.1f, .scale = 1.0f / 7}, scratch);
  const double expected_loss = golden.file.floats("smoothed_loss")[0];
  EXPECT_NEAR(loss.smoothed, expected_loss, 1e-5 * expected_loss);
  EXPECT_NEAR(loss.loss.value()(0, 0), expected_loss / 7, 1e-5 * expected_loss);
  tape.backward();

  int compared = 0;
  folder.model->visit([&](const std::string& name, Parameter& parameter) {
    if (name == "logits_bias") return;  // not trained
    SCOPED_TRACE(name);
    const TensorPlace place = encoder_decoder_place("marian", name, {});
    const auto expected = golden.file.floats("gradient." + place.names.front());
    const MatrixView found = parameter.gradient_sum();
    ASSERT_EQ(static_cast<size_t>(found.size()), expected.size());
    float largest = 0;
    for (const float x : expected) largest = std::max(largest, std::abs(x));
    for (int64_t i = 0; i < found.rows; ++i) {
      for (int64_t j = 0; j < found.cols; ++j) {
        const int64_t at =
            place.layout == TensorPlace::Layout::kTransposed ? j * found.rows + i : i * found.cols + j;
        ASSERT_NEAR(found(i, j), expected[static_cast<size_t>(at)], 1e-4f * largest + 2e-6f) << i << "," << j;
      }
    }
    ++compared;
  });
  EXPECT_EQ(compared, 1 + 2 * (8 + 4 + 4) + 2 * (16 + 4 + 6));  // embedding; encoder layers; decoder layers
}

}  // namespace
}  // namespace mh
