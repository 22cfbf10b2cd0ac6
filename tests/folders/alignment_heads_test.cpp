// alignment_heads of generation_config.json: read, written, and left out where they would mean other heads.
#include "multihead/folders/alignment_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/save_folder.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

class AlignmentHeads : public testing::Test {
 protected:
  void copy(const std::string& golden) const {
    fs::remove_all(given);
    fs::copy(fs::path(goldens_folder()) / golden, given, fs::copy_options::recursive);
  }
  json written() const { return json::parse(read_file(given / "generation_config.json")); }
  void write(const json& config) const {
    write_file_atomically(given / "generation_config.json", config.dump());
  }

  const test::ScratchFolder scratch;
  const fs::path given = scratch / "given", saved = scratch / "saved";
};

TEST_F(AlignmentHeads, AreWrittenBesideAllElseAndReadAgain) {
  for (const char* golden : {"marian/relu", "bart/plain", "t5/plain", "m2m_100/plain"}) {
    SCOPED_TRACE(golden);
    copy(golden);
    const bool there = fs::exists(given / "generation_config.json");
    const json before = there ? written() : json::object();
    const AligningHeads heads{.heads = {{0, 1}, {0, 0}}, .query = AlignedQuery::kReads};
    EXPECT_FALSE(alignment_heads_of(load_model_folder(given)));
    save_alignment_heads(load_model_folder(given), heads);
    json after = written();
    EXPECT_EQ(after["alignment_heads"], json::parse("[[0, 1], [0, 0]]"));
    EXPECT_EQ(after["alignment_query"], "reads");
    for (const char* key : {"alignment_heads", "alignment_query"}) after.erase(key);
    if (there) {
      EXPECT_EQ(after, before);
    } else {
      EXPECT_EQ(after["eos_token_id"], json::parse(read_file(given / "config.json"))["eos_token_id"]);
    }
    const ModelFolder again = load_model_folder(given);
    EXPECT_EQ(alignment_heads_of(again), heads);
    EXPECT_THAT(again.generation_remark, Not(HasSubstr("alignment")));
    save_alignment_heads(again, {.heads = {{0, 0}}});
    EXPECT_FALSE(written().contains("alignment_query"));
    save_model_folder(saved, again, {.replace = Replace::kAnyModel});
    EXPECT_EQ(alignment_heads_of(load_model_folder(saved)), (AligningHeads{.heads = {{0, 0}}}));
    fs::remove_all(saved);
  }
}

TEST_F(AlignmentHeads, ThatTheModelDoesNotHaveAreRefusedWhereTheyAreUsed) {
  copy("bart/plain");
  json config = written();
  config["alignment_heads"] = json::parse("[[0, 0], [7, 0]]");
  write(config);
  const ModelFolder folder = load_model_folder(given);
  EXPECT_THAT(
      [&] { alignment_heads_of(folder); },
      ThrowsMessage<UsageError>(HasSubstr("generation_config.json: alignment_heads: expected layers")));
  EXPECT_THROW(save_alignment_heads(folder, {.heads = {{0, 99}}}), UsageError);
  EXPECT_EQ(written(), config);
  for (const char* wrong : {"[]", "[3]", "[[0]]", "[[0, -1]]", "[[0, 1, 2]]", "[[0, 0.5]]", "{}", "\"0.1\"",
                            "[[0, 4294967296]]"}) {
    SCOPED_TRACE(wrong);
    config["alignment_heads"] = json::parse(wrong);
    write(config);
    EXPECT_THAT([&] { load_model_folder(given); },
                ThrowsMessage<FormatError>(HasSubstr("alignment_heads: expected a list")));
  }
  config["alignment_heads"] = json::parse("[[0, 0]]");
  config["alignment_query"] = "writes";
  write(config);
  EXPECT_THAT([&] { load_model_folder(given); }, ThrowsMessage<FormatError>(HasSubstr("predicts")));
}

TEST_F(AlignmentHeads, AreLeftOutWhereTheirNumbersWouldMeanOthers) {
  for (const char* golden : {"bart/plain", "marian/relu"}) {
    SCOPED_TRACE(golden);
    copy(golden);
    save_alignment_heads(load_model_folder(given), {.heads = {{0, 1}}});
    ModelFolder folder = load_model_folder(given);
    folder.generation.alignment.reset();
    save_model_folder(saved, folder, {.replace = Replace::kAnyModel});
    EXPECT_FALSE(alignment_heads_of(load_model_folder(saved)));
    fs::remove_all(saved);
  }
}

TEST_F(AlignmentHeads, CanBeSavedInAFolderAlone) {
  EXPECT_THAT(
      [] {
        save_alignment_heads(load_model_folder("demo"), {.heads = {{0, 0}}});
      },
      ThrowsMessage<UsageError>(HasSubstr("is no folder whose generation_config.json could be written")));
}

}  // namespace
}  // namespace mh
