// Folders in OPUS's layout (source.spm, target.spm, vocab.json) against MarianTokenizer and MarianMTModel
// (tests/oracles/opus_goldens.py, live: marian_tokenizer.py).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/folder_tokenizers.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/tasks/translate_text.h"
#include "multihead/train/translator/train_translator.h"
#include "multihead/train/translator/training_settings.h"
#include "tests/folders/folder_case.h"
#include "tests/io/hostile.h"
#include "tests/support/goldens.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"
#include "tests/text/answers.h"

namespace mh {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
constexpr int kNewTokens = 9;  // the last is forced to be the end

class OpusFolder : public testing::TestWithParam<std::string> {
 protected:
  const fs::path path = kGoldens / "opus" / GetParam();
  const json answers = json::parse(read_file(kGoldens / "opus" / (GetParam() + ".json")));
};

void expect_answers(const ModelFolder& folder, const json& answers) {
  for (const json& answer : answers) {
    const auto text = answer["text"].get<std::string>();
    SCOPED_TRACE(text);
    EXPECT_EQ(folder.source_tokens().encode_ids(text), answer["ids"].get<std::vector<int32_t>>());
    const auto target = answer["target_ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(folder.target_tokens().encode_ids(text), target);
    EXPECT_EQ(folder.target_tokens().decode(target), answer["decoded"].get<std::string>());
    if (std::all_of(text.begin(), text.end(), [](char c) { return c == ' '; })) continue;  // stays empty here
    const auto said = translate_text(folder, {text}, {.search = {.beam_size = 1, .max_length = kNewTokens}});
    EXPECT_EQ(said.at(0), answer["translation"].get<std::string>());
  }
}

TEST_P(OpusFolder, SaysWhatTransformersSays) {
  expect_answers(load_model_folder(path), answers);
}

// MarianTokenizer obeys more of tokenizer_config.json than is done here.
TEST_P(OpusFolder, NamesWhatOfItsSettingsIsNotUsed) {
  EXPECT_EQ(load_model_folder(path).remark(), "");
  const test::ScratchFolder scratch;
  fs::copy(path, scratch / "model");
  test::edit_json(scratch / "model" / "tokenizer_config.json", [](json& config) {
    config["truncation_side"] = "left";
    config["clean_up_tokenization_spaces"] = true;
    config["additional_special_tokens"] = json::array({"<ent>"});
  });
  const ModelFolder folder = load_model_folder(scratch / "model");
  EXPECT_EQ(folder.source_tokens().cut_end(), TextEnd::kStart);
  for (const char* file : {"source.spm", "target.spm"}) {
    EXPECT_THAT(folder.remark(), testing::HasSubstr(fmt::format("{} is read as it is written: ", file)));
  }
  EXPECT_THAT(folder.remark(), testing::HasSubstr("'<ent>' of the files beside it"));
}

TEST_P(OpusFolder, OffsetsAreCharactersOfTheText) {
  const Tokenizer tokenizer = load_model_folder(path).source_tokens();
  const Encoding encoding = tokenizer.encode(">>fra<< A dog");
  ASSERT_GE(encoding.offsets.size(), 4U);
  EXPECT_EQ(encoding.offsets.front(), (std::pair<int32_t, int32_t>(0, 7)));
  EXPECT_EQ(encoding.tokens.front(), ">>fra<<");
  EXPECT_EQ(encoding.offsets[encoding.offsets.size() - 2].second, 13);
  EXPECT_EQ(encoding.tokens.back(), "</s>");
  EXPECT_EQ(encoding.ids, tokenizer.encode_ids(">>fra<< A dog"));
}

// Its tokenizers cannot be written as tokenizer.json: the files go along as they are.
TEST_P(OpusFolder, IsSavedWithItsOwnFiles) {
  const test::ScratchFolder scratch;
  const ModelFolder folder = load_model_folder(path);
  EXPECT_THROW(folder.source_tokens().to_json(), UsageError);
  save_model_folder(scratch / "saved", folder.translator(),
                    {.tokenizer = &*folder.tokenizer, .target_tokenizer = &*folder.target_tokenizer});
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename();
    ASSERT_TRUE(fs::exists(scratch / "saved" / name)) << name;
    if (name.ends_with(".spm") || name.ends_with("vocab.json") || name == "tokenizer_config.json") {
      EXPECT_EQ(read_file(scratch / "saved" / name), read_file(entry.path())) << name;
    }
  }
  EXPECT_FALSE(fs::exists(scratch / "saved" / "tokenizer.json"));
  expect_answers(load_model_folder(scratch / "saved"), answers);
}

// The folder that it begins from is named by a relative path; the run goes on by its own settings.
TEST_P(OpusFolder, IsTrainedOn) {
  const test::ScratchFolder scratch;
  std::string english, german;
  for (int i = 0; i < 20; ++i) english += "A dog runs.\n", german += "Was machst du heute Abend?\n";
  write_file_atomically(scratch / "en", english);
  write_file_atomically(scratch / "de", german);
  TranslatorSettings settings;
  settings.train_source = scratch / "en";
  settings.train_target = scratch / "de";
  settings.model = scratch / "model";
  settings.init_from = fs::relative(path).string();
  settings.updates = 2;
  train_translator(settings);
  TranslatorSettings more = kept_settings(scratch / "model").value();
  more.updates = 3;
  EXPECT_EQ(train_translator(more).updates, 3);
  EXPECT_EQ(read_file(scratch / "model" / "source.spm"), read_file(path / "source.spm"));
  EXPECT_EQ(load_model_folder(scratch / "model").source_tokens().encode_ids("A dog runs."),
            answers[0]["ids"].get<std::vector<int32_t>>());
}

INSTANTIATE_TEST_SUITE_P(Layouts, OpusFolder, testing::Values("joint", "separate"));

TEST(OpusTokenizers, DamagedOnesAreNamed) {
  const auto expect = [](const std::string& part, const std::function<void(const fs::path&)>& damage) {
    const test::ScratchFolder scratch;
    fs::copy(kGoldens / "opus" / "separate", scratch / "model");
    damage(scratch / "model");
    test::expect_one_line_error([&] { load_model_folder(scratch / "model"); }, part, part);
  };
  const auto edit = [](const char* name, const std::function<void(json&)>& change) {
    return [name, change](const fs::path& folder) { test::edit_json(folder / name, change); };
  };
  for (const char* name : {"source.spm", "target.spm", "vocab.json"})
    expect(fmt::format("model/{}, which SentencePiece tokenizers", name),
           [name](const fs::path& folder) { fs::remove(folder / name); });
  expect("source.spm",
         [](const fs::path& folder) { write_file_atomically(folder / "source.spm", "no model"); });
  expect("expected an object",
         [](const fs::path& folder) { write_file_atomically(folder / "vocab.json", "[1]"); });
  expect("twice", [](const fs::path& folder) {
    write_file_atomically(folder / "vocab.json", R"({"</s>": 0, "<unk>": 1, "</s>": 2})");
  });
  expect("lacks the token '</s>'", edit("vocab.json", [](json& ids) {
           ids.erase("</s>");
           ids["other"] = 0;
         }));
  expect("lacks the token '<pad>'", edit("target_vocab.json", [](json& ids) {
           ids["other"] = ids["<pad>"];
           ids.erase("<pad>");
         }));
  expect("unknown token", edit("vocab.json", [](json& ids) {
           ids["other"] = ids["<unk>"];
           ids.erase("<unk>");
         }));
  for (const json& id : {json(-1), json(1.5), json("1"), json(1 << 30), json(nullptr)})
    expect("vocab.json: the id of", edit("vocab.json", [&](json& ids) { ids["a"] = id; }));
  expect("have id 3", edit("vocab.json", [](json& ids) { ids["other"] = 3; }));
  expect("/vocab.json does not match the model",
         edit("vocab.json", [](json& ids) { ids["other"] = ids.size(); }));
  expect("pad token \"</s>\"",
         edit("tokenizer_config.json", [](json& config) { config["pad_token"] = "</s>"; }));
}

TEST(SlowOpusOracle, TokenizersAgreeWithMarianTokenizer) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr ||
      std::system(fmt::format("{} -c 'import transformers' 2>/dev/null", python).c_str()) != 0) {
    GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with transformers and sentencepiece";
  }
  const test::ScratchFolder scratch;
  std::vector<std::string> texts = {"snow \u2603\u2603 and \u2603 \U0001d4b3", ">>deu<< snow", ">>a<<b"};
  for (const char* file : {"torture/torture.txt", "text/small.txt"}) {
    for (const std::string& line : lines_of(read_file(kGoldens / file))) {
      if (line.find('\0') == std::string::npos) texts.push_back(line);
    }
  }
  write_file_atomically(scratch / "texts", fmt::format("{}", fmt::join(texts, "\n")));
  const std::string command =
      fmt::format("{} {}/tests/oracles/marian_tokenizer.py {} {} 2>/dev/null", python, source_folder(),
                  scratch.path().string(), (scratch / "texts").string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  for (const std::string kind : {"unigram", "unigram_bytes", "bpe", "bpe_bytes"}) {
    SCOPED_TRACE(kind);
    const FolderTokenizers tokenizers = read_folder_tokenizers(DirectoryFolder(scratch / kind));
    const json answers = json::parse(read_file(scratch / kind / "answers.json"));
    ASSERT_EQ(answers["ids"].size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      SCOPED_TRACE(texts[i].substr(0, 200));
      const auto ids = answers["ids"][i].get<std::vector<int32_t>>();
      EXPECT_EQ(tokenizers.source.value().encode_ids(texts[i]), ids);
      EXPECT_EQ(tokenizers.target.value().decode(ids), answers["decoded"][i].get<std::string>());
    }
  }
}

}  // namespace
}  // namespace mh
