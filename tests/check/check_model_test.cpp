// Whether a model is computed right, by what transformers answered before (tests/oracles/check_goldens.py).
#include "multihead/check/check_model.h"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/thread_pool.h"
#include "multihead/check/check_json.h"
#include "multihead/check/row_difference.h"
#include "multihead/io/safetensors.h"
#include "multihead/tensor/tensor.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const char* const kModel = "llama/tied_grouped";

ModelFolder golden_model() {
  return load_model_folder(fs::path(goldens_folder()) / kModel);
}
fs::path golden_answer() {
  return fs::path(goldens_folder()) / "check" / "llama_tied_grouped.safetensors";
}

TEST(RowDifference, IsThatOfTheWorstRow) {
  Tensor there(3, 2);
  there(0, 0) = 3, there(0, 1) = 4;  // |b| = 5
  there(1, 0) = 1;
  there(2, 0) = 1;
  const RowDifference found = row_difference({{3, 4.5f}, {1, 0.25f}, {1, 0}}, there.view());
  EXPECT_DOUBLE_EQ(found.difference, 0.25);
  EXPECT_EQ(found.row, 1u);
}

TEST(RowDifference, MeasuresSmallRowsByTheUsualOne) {
  Tensor there(3, 1);
  there(0, 0) = 1e-6f, there(1, 0) = 1, there(2, 0) = 1;
  EXPECT_NEAR(row_difference({{2e-6f}, {1}, {1}}, there.view()).difference, 1e-6, 1e-10);
}

TEST(RowDifference, LooksAtTheColumnsOfARowAlone) {
  Tensor there(2, 2);
  there(0, 0) = 1, there(0, 1) = 100, there(1, 0) = 1, there(1, 1) = 1;
  EXPECT_EQ(row_difference({{1}, {1, 1}}, there.view()).difference, 0);
}

TEST(RowDifference, OfWhatIsNoNumberIsNone) {
  Tensor there(1, 1);
  there(0, 0) = 1;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(row_difference({{nan}}, there.view()).difference));
}

TEST(CheckModel, OfARightModelSaysSo) {
  const int threads = thread_count();
  const CheckReport report = check_model(golden_model(), {}, SafetensorsFile::open(golden_answer()));
  EXPECT_EQ(thread_count(), threads);
  EXPECT_TRUE(report.right());
  EXPECT_TRUE(report.threads_agree);
  EXPECT_EQ(report.transformers_class, "LlamaForCausalLM");
  EXPECT_EQ(report.greedy_texts, 4u);
  EXPECT_THAT(report.not_compared, testing::IsEmpty());
  EXPECT_EQ(report.sites.front().site, "decoder.embeddings");
  EXPECT_EQ(report.sites.back().site, "decoder.logits");
  for (const SiteDifference& site : report.sites) {
    for (const std::optional<double>& difference : site.differences) {
      ASSERT_TRUE(difference.has_value()) << site.site;
      EXPECT_LT(*difference, 1e-5) << site.site;
    }
  }
}

TEST(CheckModel, FindsAnotherGreedyToken) {
  const SafetensorsFile answer = SafetensorsFile::open(golden_answer());
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<float>> floats;
  std::vector<int64_t> greedy = answer.integers("greedy");
  greedy[13] = (greedy[13] + 1) % 37;
  for (const TensorEntry& entry : answer.entries())
    floats.push_back(entry.name == "greedy" ? std::vector<float>() : answer.floats(entry.name));
  for (size_t i = 0; i < floats.size(); ++i) {
    const TensorEntry& entry = answer.entries()[i];
    if (entry.name == "greedy") {
      tensors.push_back({.name = entry.name, .shape = entry.shape, .data = std::span<const int64_t>(greedy)});
    } else {
      tensors.push_back(
          {.name = entry.name, .shape = entry.shape, .data = std::span<const float>(floats[i])});
    }
  }
  const CheckReport report =
      check_model(golden_model(), {},
                  SafetensorsFile::from_bytes(write_safetensors(tensors, answer.metadata()), "answer"));
  EXPECT_FALSE(report.right());
  EXPECT_FALSE(report.first.has_value());
  ASSERT_TRUE(report.greedy.has_value());
  EXPECT_EQ(report.greedy->text, 1u);
  EXPECT_EQ(report.greedy->token, 1u);
}

TEST(CheckModel, GivesTheRequestAndReadsTheAnswer) {
  nlohmann::json request;
  const CheckReport report =
      check_model(golden_model(), {}, [&](const fs::path& asked, const fs::path& answer) {
        request = nlohmann::json::parse(read_file(asked));
        fs::copy_file(golden_answer(), answer);
      });
  EXPECT_TRUE(report.right());
  EXPECT_EQ(request["kind"], "causal");
  EXPECT_EQ(request["texts"].size(), 4u);
  EXPECT_EQ(request["modules"]["stacks"][0]["attentions"][0]["queries"], "self_attn.q_proj");
}

TEST(CheckModel, WritesItsReport) {
  const CheckReport report = check_model(golden_model(), {}, SafetensorsFile::open(golden_answer()));
  const auto json = nlohmann::json::parse(check_json(report, "model"));
  EXPECT_EQ(json["right"], true);
  EXPECT_EQ(json["first"], nullptr);
  EXPECT_EQ(json["weights_sha256"].get<std::string>().size(), 64u);
  EXPECT_NEAR(json["options"]["tolerance"].get<double>(), 1e-4, 1e-9);
  EXPECT_EQ(json["parts"][0]["part"], "decoder.embeddings");
  EXPECT_EQ(json["versions"]["transformers"], report.transformers);
  EXPECT_EQ(json["texts"][0]["ids"].size(), 3u);
}

TEST(CheckModel, SaysWhichTransformersWereTried) {
  const SafetensorsFile answer = SafetensorsFile::open(golden_answer());
  EXPECT_THAT(check_model(golden_model(), {}, answer).remarks, testing::IsEmpty());
}

TEST(CheckModel, RefusesWhatItCannotDo) {
  const ModelFolder folder = golden_model();
  const auto none = [](const fs::path&, const fs::path&) {};
  EXPECT_THROW(check_model(folder, {.texts = {"a text"}}, none), Error);  // it has no tokenizer
  EXPECT_THROW(check_model(folder, {}, none), FileError);                 // no answer
  const auto of_another =
      SafetensorsFile::open(fs::path(goldens_folder()) / "check" / "roberta_masked.safetensors");
  EXPECT_THROW(check_model(folder, {}, of_another), FormatError);
  try {
    check_memory(folder, 1000);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("available"));
  }
  try {
    check_model(load_model_folder("demo"), {}, none);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("demo is none"));
  }
}

}  // namespace
}  // namespace mh
