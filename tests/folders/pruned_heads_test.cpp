// "pruned_heads": folders whose heads Transformers pruned are read, and written so.
#include "multihead/folders/pruned_heads.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/nn/multi_head_attention.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;

const fs::path kFamilies = goldens_folder();

TEST(PrunedHeads, AreReadAndRefused) {
  EXPECT_TRUE(read_pruned_heads("{}", "config.json").empty());
  EXPECT_TRUE(read_pruned_heads(R"({"pruned_heads": {}})", "config.json").empty());
  EXPECT_TRUE(read_pruned_heads(R"({"pruned_heads": {"1": []}})", "config.json").empty());
  EXPECT_THAT(read_pruned_heads(R"({"pruned_heads": {"3": [0], "0": [5, 1]}})", "config.json"),
              ElementsAre(Pair(0, ElementsAre(1, 5)), Pair(3, ElementsAre(0))));
  for (const char* wrong : {"[1]", R"({"a": [1]})", R"({"-1": [1]})", R"({"0": 1})", R"({"0": [1, 1]})",
                            R"({"0": [-1]})", R"({"0": [1.5]})", R"({"0": [99999999]})"})
    EXPECT_THAT(
        [&] { read_pruned_heads(fmt::format(R"({{"pruned_heads": {}}})", wrong), "config.json"); },
        ThrowsMessage<FormatError>(HasSubstr("config.json: pruned_heads: expected layers with lists")))
        << wrong;
}

/// The folder of a family without heads of its first attention; opened again.
ModelFolder pruned_again(ModelFolder& folder, const std::string& out, const std::vector<int>& heads) {
  std::vector<std::string> names;
  std::vector<HeadName> removed;
  for (const int head : heads) {
    removed.push_back({.attention = folder.model->attentions().front().name, .head = head});
    names.push_back(fmt::format("{}.{}", removed.back().attention, head));
  }
  folder.model = without_heads(*folder.model, names);
  EXPECT_EQ(format_when_saved(folder, removed).kind, SavedFormat::Kind::kPrunedHeads);
  save_model_folder(out, folder, {.removed = removed});
  return load_model_folder(out);
}

nlohmann::json config_in(const std::string& folder) {
  return nlohmann::json::parse(read_file(fs::path(folder) / "config.json"));
}

class PrunedFolder : public testing::TestWithParam<const char*> {};

// Numbers are those of the model before any head went: the second time, heads 0 and 1 are 0 and 2 of them.
TEST_P(PrunedFolder, KeepsTheFirstNumbers) {
  const test::ScratchFolder scratch;
  ModelFolder folder = load_model_folder(kFamilies / GetParam());
  const int heads = folder.model->attentions().front().heads;
  ModelFolder once = pruned_again(folder, scratch / "once", {1});
  EXPECT_EQ(config_in(scratch / "once")["pruned_heads"], nlohmann::json({{"0", {1}}}));
  EXPECT_FALSE(config_in(scratch / "once").contains("multihead_heads"));
  EXPECT_EQ(once.model->attentions().front().heads, heads - 1);
  EXPECT_THAT(once.remark(), testing::Not(HasSubstr("pruned_heads")));  // which was obeyed
  save_model_folder(scratch / "same", once);
  EXPECT_EQ(config_in(scratch / "same")["pruned_heads"], nlohmann::json({{"0", {1}}}));
  pruned_again(once, scratch / "twice", {1});
  EXPECT_EQ(config_in(scratch / "twice")["pruned_heads"], nlohmann::json({{"0", {1, 2}}}));
}

// What cannot be of this model.
TEST_P(PrunedFolder, RefusesOtherNumbers) {
  const test::ScratchFolder scratch;
  fs::copy(kFamilies / GetParam(), scratch / "model", fs::copy_options::recursive);
  nlohmann::json config = config_in(scratch / "model");
  const auto refused = [&](const nlohmann::json& pruned, const char* why) {
    config["pruned_heads"] = pruned;
    write_file_atomically(fs::path(scratch / "model") / "config.json", config.dump());
    EXPECT_THAT([&] { load_model_folder(scratch / "model"); }, ThrowsMessage<FormatError>(HasSubstr(why)));
  };
  refused({{"7", {0}}}, "pruned_heads names layer 7; the model has layers 0");
  refused({{"0", {9}}}, "pruned_heads names head 9 of layer 0; it has heads 0");
  refused({{"0", {0}}}, "does not fit");  // the tensors have all heads
  const int heads = load_model_folder(kFamilies / GetParam()).model->attentions().front().heads;
  nlohmann::json all = nlohmann::json::array();
  for (int head = 0; head < heads; ++head) all.push_back(head);
  refused({{"0", all}}, "leaves layer 0 no head");
}

INSTANTIATE_TEST_SUITE_P(Families, PrunedFolder,
                         testing::Values("bert/masked", "distilbert/masked", "electra/masked",
                                         "roberta/masked", "gpt2/tied"));

// The others have no such field.
TEST(PrunedHeads, OtherFamiliesTakeOurOwnFormat) {
  for (const char* name : {"modernbert/masked", "llama/untied_biased_linear_bf16"}) {
    ModelFolder folder = load_model_folder(kFamilies / name);
    const std::string attention = folder.model->attentions().front().name;
    if (folder.model->attention(attention).geometry().key_heads != folder.model->attention(attention).heads())
      continue;
    folder.model = without_heads(*folder.model, {attention + ".0"});
    const SavedFormat format = format_when_saved(folder, std::vector<HeadName>{{attention, 0}});
    EXPECT_EQ(format.kind, SavedFormat::Kind::kOwn);
    EXPECT_THAT(format.why, HasSubstr("same heads"));
  }
}

// Llama's fields hold any number, as long as all layers have the same.
TEST(PrunedHeads, EqualLayersStayInLlamasFormat) {
  const test::ScratchFolder scratch;
  ModelFolder folder = load_model_folder(kFamilies / "llama/tied_grouped");
  folder.model = without_heads(*folder.model, {"decoder.*.0", "decoder.*.1"});  // a group of two
  EXPECT_EQ(format_when_saved(folder).kind, SavedFormat::Kind::kFamily);
  save_model_folder(scratch / "pruned", folder);
  const nlohmann::json config = config_in(scratch / "pruned");
  EXPECT_EQ(config["num_attention_heads"], 4);
  EXPECT_EQ(config["num_key_value_heads"], 2);
  EXPECT_FALSE(config.contains("multihead_heads"));
}

}  // namespace
}  // namespace mh
