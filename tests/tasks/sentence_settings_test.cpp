// What the settings of sentence-transformers say about vectors and texts: truncate_dim, modality_config.
#include "tests/tasks/sentence_folder_case.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using SentenceSettings = test::SentenceFolder;

// The first numbers of the vectors, after the division by their length, which is not done again.
TEST_F(SentenceSettings, TruncateDimKeepsTheFirstNumbers) {
  const auto truncated = [&](const fs::path& folder, const json& value) {
    edit(folder / "config_sentence_transformers.json", [&](json& config) { config["truncate_dim"] = value; });
    return load_sentence_model(folder);
  };
  const fs::path modes = copy_of("modes"), dense = copy_of("dense"), unit = copy_of("dense");
  EXPECT_EQ(truncated(modes, 31).dimension, 31);
  expect_near(vectors_of(modes), "modes", 6 * 14);
  EXPECT_EQ(truncated(dense, 9).dimension, 9);
  expect_near(vectors_of(dense), "dense", 9);
  EXPECT_EQ(truncated(dense, 1).dimension, 1);
  expect_near(vectors_of(dense), "dense", 9);
  EXPECT_EQ(truncated(dense, nullptr).dimension, 9);

  edit(unit / "modules.json", [](json& modules) { modules.erase(4); });  // ends with Normalize
  const Tensor whole = vectors_of(unit);
  ASSERT_EQ(whole.cols(), 11);
  truncated(unit, 5);
  const Tensor cut = vectors_of(unit);
  ASSERT_EQ(cut.cols(), 5);
  double length = 0;
  for (int64_t i = 0; i < cut.rows(); ++i) {
    for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(cut(i, j), whole(i, j));
  }
  for (int64_t j = 0; j < 5; ++j) length += static_cast<double>(cut(0, j)) * static_cast<double>(cut(0, j));
  EXPECT_LT(length, 0.9);
}

// sentence-transformers 6 puts every text into the chat template of such a model; "text" alone is the bare text.
TEST_F(SentenceSettings, TextsAsChatMessagesAreRefused) {
  const fs::path folder = copy_of("dense");
  const json forward{{"method", "forward"}, {"method_output_name", "last_hidden_state"}};
  const auto modalities = [&](const json& value) {
    edit(folder / "sentence_bert_config.json", [&](json& config) { config["modality_config"] = value; });
  };
  modalities({{"text", forward}, {"message", forward}});
  expect_refused(folder,
                 "sentence_bert_config.json: modality_config.message: sentence-transformers puts every text "
                 "into the chat template of the model");
  modalities(json::array());
  expect_refused(folder, "modality_config: expected an object");
  for (const json& value : {json{{"text", forward}}, json{{"text", forward}, {"message", nullptr}}, json()}) {
    modalities(value);
    expect_near(vectors_of(folder), "dense", 9);
  }
}

}  // namespace
}  // namespace mh
