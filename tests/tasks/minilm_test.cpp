// all-MiniLM-L6-v2, which scripts/models fetches, against transformers and sentence-transformers.
// tests/oracles/minilm_goldens.py makes the goldens; minilm_check.py compares whole corpora.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "multihead/heads/measures/inspect_heads.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/io/lines.h"
#include "multihead/io/safetensors.h"
#include "multihead/tasks/embed_text.h"
#include "tests/support/places.h"

namespace mh {
namespace {

class MiniLm : public testing::Test {
 protected:
  void SetUp() override {
    const char* models = std::getenv("MULTIHEAD_MODELS");
    if (models == nullptr)
      GTEST_SKIP() << "set MULTIHEAD_MODELS to what scripts/models prints: MiniLM is needed";
    folder = std::filesystem::path(models) / "minilm";
  }
  std::filesystem::path folder;
  const std::filesystem::path goldens = std::filesystem::path(goldens_folder()) / "minilm";
  const SafetensorsFile golden = SafetensorsFile::open(goldens / "golden.safetensors");
};

TEST_F(MiniLm, StatesAreThoseOfTransformersUpTo256Tokens) {
  const ModelFolder model = load_model_folder(folder);
  const auto lengths = golden.integers("lengths"), ids = golden.integers("ids"),
             rows = golden.integers("rows");
  Batch batch;
  auto at = ids.begin();
  for (const int64_t length : lengths) {
    batch.add(std::vector<int32_t>(at, at + length), 0);
    at += length;
  }
  EXPECT_EQ(*std::max_element(lengths.begin(), lengths.end()), 256);
  Tape tape;
  Context context{.tape = tape};
  const ConstMatrixView states = model.model->read(context, batch.view(), {}).value();
  const std::vector<float> expected = golden.floats("states");
  double most = 0, difference = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t j = 0; j < 384; ++j) {
      const double wanted = expected[i * 384 + static_cast<size_t>(j)];
      most = std::max(most, std::abs(wanted));
      difference = std::max(difference, std::abs(wanted - static_cast<double>(states(rows[i], j))));
    }
  }
  EXPECT_LT(difference, 1e-4 * most);
  RecordProperty("difference", std::to_string(difference / most));
}

TEST_F(MiniLm, VectorsAreThoseOfSentenceTransformers) {
  const SentenceModel model = load_sentence_model(folder);
  EXPECT_EQ(model.longest, 256);  // tokenizer.json says 128, tokenizer_config.json 512
  EXPECT_EQ(model.dimension, 384);
  EXPECT_TRUE(model.remarks.empty());
  std::vector<std::string> remarks;
  const auto lines = read_lines(goldens / "lines.txt");
  const Tensor found =
      embed_text(model, lines, {.remark = [&](const std::string& line) { remarks.push_back(line); }});
  const std::vector<float> expected = golden.floats("vectors");
  for (int64_t i = 0; i < found.rows(); ++i) {
    double product = 0, length = 0;
    for (int64_t j = 0; j < 384; ++j) {
      const double x = found(i, j);
      product += x * static_cast<double>(expected[static_cast<size_t>(i * 384 + j)]);
      length += x * x;
    }
    EXPECT_GE(product, 0.999999) << lines[static_cast<size_t>(i)];
    EXPECT_NEAR(length, 1, 1e-5);
  }
  EXPECT_THAT(remarks, testing::Contains(testing::HasSubstr("1 of 12 texts cut to the 256 tokens")));
  EXPECT_EQ(nearest_rows(found.view().rows_between(0, 1), found.view().rows_between(1, 4), 1)[0][0].row, 0);
}

TEST_F(MiniLm, ItsHeadsAreSeenAndMuted) {
  const ModelFolder model = load_model_folder(folder);
  HeadsText text;
  text.sources = {"two dogs run .", "", "the cat sleeps ."};
  const HeadReport report = inspect_heads(model, text);
  EXPECT_EQ(report.heads.size(), 6u * 12);
  EXPECT_EQ(report.sentences, 2);
  const Observation seen = observe_text(model, "two dogs run .");
  EXPECT_EQ(seen.source.tokens, (std::vector<std::string>{"[CLS]", "two", "dogs", "run", ".", "[SEP]"}));
  SiteValues muted;
  muted.mute("encoder.5.self_attention.11");
  const SentenceModel sentences = load_sentence_model(folder);
  const std::vector<std::string> line{"two dogs run ."};
  const Tensor with = embed_text(sentences, line), without = embed_text(sentences, line, {.sites = &muted});
  EXPECT_NE(with(0, 0), without(0, 0));
}

}  // namespace
}  // namespace mh
