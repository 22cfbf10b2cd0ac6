// SmolLM2-135M-Instruct, which scripts/models fetches, against what transformers and tokenizers compute with the same
// file (tests/oracles/gguf_goldens.py --smollm2).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "multihead/batch/batch.h"
#include "multihead/folders/model_folder.h"
#include "multihead/models/vocabulary_head.h"
#include "tests/folders/gguf_texts.h"
#include "tests/support/places.h"

namespace mh {
namespace {

class SlowSmolLm2 : public testing::Test {
 protected:
  void SetUp() override {
    const char* models = std::getenv("MULTIHEAD_MODELS");
    if (models == nullptr) GTEST_SKIP() << "set MULTIHEAD_MODELS to the folder that scripts/models made";
    path = std::filesystem::path(models) / "smollm2.gguf";
  }
  std::filesystem::path path;
  const SafetensorsFile golden =
      SafetensorsFile::open(goldens_folder() + "/smollm2/smollm2.golden.safetensors");
};

TEST_F(SlowSmolLm2, StatesAndLogitsAreThoseOfTransformers) {
  const ModelFolder folder = load_model_folder(path);
  const LanguageModel& model = folder.language_model();
  EXPECT_EQ(folder.model->parameter_count(), 134515008);
  for (const char* length : {"1", "2", "127", "2048"}) {
    const auto named = [&](const char* name) { return std::string(length) + "." + name; };
    const auto ids = golden.integers(named("ids"));
    const Batch batch({std::vector<int32_t>(ids.begin(), ids.end())});
    Tape tape;
    Context context{.tape = tape};
    const MatrixView states = model.states(context, {}, batch.view()).value();
    const int64_t rows = std::min<int64_t>(2, states.rows);
    const ConstMatrixView last{states.row(states.rows - rows), rows, states.cols, states.stride};
    Tensor logits(rows, model.facts().vocabulary);
    model.vocabulary().logits(last, logits.view());
    const auto compare = [&](const char* what, ConstMatrixView found, int64_t step) {
      const std::vector<float> expected = golden.floats(named(what));
      const float greatest = golden.floats(named((std::string("greatest_") + what).c_str())).at(0);
      double difference = 0;
      size_t at = 0;
      for (int64_t i = 0; i < found.rows; ++i) {
        for (int64_t j = 0; j < found.cols; j += step)
          difference = std::max(difference, std::abs(double{expected.at(at++)} - found(i, j)));
      }
      EXPECT_EQ(at, expected.size()) << named(what);
      EXPECT_LT(difference, 1e-4 * greatest) << named(what);
      RecordProperty(named(what), std::to_string(difference / greatest));
    };
    compare("states", last, 1);
    compare("logits", logits.view(), 61);
  }
  // What products read is packed; nothing else is kept of the weights.
  folder.model->visit([](const std::string& name, Parameter& parameter) {
    EXPECT_FALSE(parameter.value.rows() > 1 && parameter.value.is_own()) << name;
  });
}

TEST_F(SlowSmolLm2, IdsAreThoseOfTokenizers) {
  const ModelFolder folder = load_model_folder(path);
  test::expect_ids_of_texts(folder.source_tokens(), golden, "");
  EXPECT_NE(folder.chat_template.find("<|im_start|>"), std::string::npos);
}

}  // namespace
}  // namespace mh
