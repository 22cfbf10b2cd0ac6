// Tokenizers of GGUF files: every name of tokenizer.ggml.pre against Hugging Face's answers about the same
// tokenizer with its regular expressions, SentencePiece's byte-pair encoding against the library's, and both
// written as tokenizer.json.
#include "multihead/folders/gguf_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "multihead/io/lines.h"
#include "tests/io/gguf_bytes.h"
#include "tests/io/hostile.h"
#include "tests/support/goldens.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"
#include "tests/text/answers.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using namespace test;

const std::filesystem::path kSentencePiece = kGoldens / "gguf_sentencepiece";

Tokenizer tokenizer_of(const GgufSpec& spec) {
  return *gguf_tokenizer(GgufFile::from_bytes(spec.bytes(), "file.gguf"));
}

/// A name, and the tokenizer.json of tests/goldens/torture that cuts words as it says.
struct Named {
  const char* name;
  const char* file;
};
constexpr Named kNames[] = {{"gpt-2", "byte_level_gpt2"},
                            {"mpt", "byte_level_gpt2"},
                            {"smollm", "byte_level_smollm"},
                            {"olmo", "byte_level_gpt2"},
                            {"deepseek-r1-qwen", "byte_level_qwen2"},
                            {"llama-bpe", "byte_level_llama3"},
                            {"llama3", "byte_level_llama3"},
                            {"llama-v3", "byte_level_llama3"},
                            {"qwen2", "byte_level_qwen2"},
                            {"gpt-4o", "byte_level_o200k"},
                            {"tekken", "byte_level_tekken"}};

/// The vocabulary and merges of a tokenizer.json as a GGUF file.
GgufSpec as_gguf(const Named& named) {
  const json document = json::parse(read_file(kGoldens / "torture" / (std::string(named.file) + ".json")));
  const json& model = document["model"];
  std::vector<std::string> tokens(model["vocab"].size()), merges;
  std::vector<int32_t> types(tokens.size(), 1);
  for (const auto& [token, id] : model["vocab"].items()) tokens[id.get<size_t>()] = token;
  for (const json& merge : model["merges"])
    merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  for (const json& token : document["added_tokens"]) types[token["id"].get<size_t>()] = 3;
  GgufSpec spec;
  spec.values = {
      {"tokenizer.ggml.model", gguf_string("gpt2")},   {"tokenizer.ggml.pre", gguf_string(named.name)},
      {"tokenizer.ggml.tokens", gguf_strings(tokens)}, {"tokenizer.ggml.token_type", gguf_ints(types)},
      {"tokenizer.ggml.merges", gguf_strings(merges)}, {"tokenizer.ggml.bos_token_id", gguf_u32(1)}};
  if (std::string_view(named.name) == "tekken")  // which otherwise begins a text as Llama 3 does
    spec.values.emplace_back("tokenizer.ggml.add_bos_token", gguf_bool(0));
  spec.tensors = {gguf_zeros("a", {1})};
  return spec;
}

class GgufWords : public testing::TestWithParam<Named> {};

TEST_P(GgufWords, AgreeWithHuggingFaceOnTheTortureSet) {
  const Tokenizer tokenizer = tokenizer_of(as_gguf(GetParam()));
  const std::string whole = read_file(kGoldens / "torture" / "torture.txt");
  std::vector<std::string> texts = lines_of(whole);
  texts.push_back(whole);
  const json goldens = json::parse(read_file(kGoldens / "torture" / "goldens.json"));
  for (const json& file : goldens["files"]) {
    if (file["file"] != std::string(GetParam().file) + ".json") continue;
    ASSERT_EQ(file["texts"].size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) expect_answer(tokenizer, texts[i], file["texts"][i]);
    return;
  }
  FAIL() << "no golden of " << GetParam().file;
}

INSTANTIATE_TEST_SUITE_P(Names, GgufWords, testing::ValuesIn(kNames), [](const auto& named) {
  std::string name = named.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(GgufWords, BeginAsTheFileOrTheirNameSays) {
  const auto first = [](const GgufSpec& spec) { return tokenizer_of(spec).encode_ids("a").front(); };
  GgufSpec spec = as_gguf({"llama-bpe", "byte_level_llama3"});
  const int32_t a = *tokenizer_of(spec).id_of("a");
  EXPECT_EQ(first(spec), 1);
  spec.value("tokenizer.ggml.add_bos_token") = gguf_bool(0);
  EXPECT_EQ(first(spec), a);
  spec.erase("tokenizer.ggml.add_bos_token");
  spec.erase("tokenizer.ggml.bos_token_id");
  EXPECT_EQ(first(spec), a);  // llama.cpp takes id 11, whatever that is
  spec = as_gguf({"tekken", "byte_level_tekken"});
  spec.erase("tokenizer.ggml.add_bos_token");
  EXPECT_EQ(first(spec), 1);
  spec.value("tokenizer.ggml.pre") = gguf_string("qwen2");
  EXPECT_EQ(first(spec), a);
  spec.value("tokenizer.ggml.add_bos_token") = gguf_bool(1);
  EXPECT_EQ(first(spec), 1);
}

TEST(GgufWords, WholeWordsNeedNoMerges) {
  GgufSpec spec;
  spec.values = {{"tokenizer.ggml.model", gguf_string("gpt2")},
                 {"tokenizer.ggml.pre", gguf_string("llama-bpe")},
                 {"tokenizer.ggml.tokens", gguf_strings({"a", "b", "ab"})},
                 {"tokenizer.ggml.merges", gguf_strings({})}};
  spec.tensors = {gguf_zeros("a", {1})};
  EXPECT_THAT(tokenizer_of(spec).encode_ids("ab"), ElementsAre(2));
  for (const char* name : {"smaug-bpe", "dbrx"}) {
    spec.value("tokenizer.ggml.pre") = gguf_string(name);
    EXPECT_THAT(tokenizer_of(spec).encode_ids("ab"), ElementsAre(0, 1));
  }
}

/// Compares with the library's answers beside the file.
void expect_answers_of_sentencepiece(const std::filesystem::path& folder,
                                     const std::vector<std::string>& texts) {
  const Tokenizer tokenizer = *gguf_tokenizer(GgufFile::open(folder / "llama.gguf"));
  const Tokenizer written = Tokenizer::from_json(tokenizer.to_json(), "written");
  const json answers = json::parse(read_file(folder / "answers.json"));
  ASSERT_EQ(answers.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].find("</s>") != std::string::npos) continue;  // plain text to SentencePiece
    SCOPED_TRACE(texts[i].substr(0, 200));
    const std::vector<int32_t> ids = tokenizer.encode_ids(texts[i], false);
    EXPECT_EQ(hash_of(ids), answers[i]["hashes"][0].get<std::string>());
    EXPECT_EQ(written.encode_ids(texts[i], false), ids);
    const std::vector<int32_t> whole = tokenizer.encode_ids(texts[i]);
    ASSERT_EQ(whole.size(), ids.size() + 1);
    EXPECT_EQ(whole.front(), 1);
    EXPECT_EQ(tokenizer.decode(whole), tokenizer.decode(ids));
    EXPECT_EQ(hash_of_bytes(tokenizer.decode(ids)), answers[i]["hashes"][2].get<std::string>());
  }
}

TEST(GgufSentencePiece, AgreesWithTheLibrary) {
  expect_answers_of_sentencepiece(kSentencePiece, lines_of(read_file(kGoldens / "torture" / "torture.txt")));
}

/// Pieces "a" and "b", a space, what they make, and three bytes of one character.
GgufSpec small_sentence_piece() {
  GgufSpec spec;
  spec.values = {
      {"tokenizer.ggml.model", gguf_string("llama")},
      {"tokenizer.ggml.tokens", gguf_strings({"<unk>", "<s>", "</s>", "a", "b", "▁", "ab", "▁a", "<0xE2>",
                                              "<0x82>", "<0xAC>", "<tag>", "▁ab", "ba"})},
      {"tokenizer.ggml.scores", gguf_floats({0, 0, 0, -9, -9, -9, -2, -1, 0, 0, 0, 0, -3, -1.5f})},
      {"tokenizer.ggml.token_type", gguf_ints({2, 3, 3, 1, 1, 1, 1, 1, 6, 6, 6, 4, 1, 1})},
      {"tokenizer.ggml.bos_token_id", gguf_u32(1)},
      {"tokenizer.ggml.eos_token_id", gguf_u32(2)}};
  spec.tensors = {gguf_zeros("a", {1})};
  return spec;
}

TEST(GgufSentencePiece, MergesByScoreAndFallsBackToBytes) {
  GgufSpec spec = small_sentence_piece();
  const Tokenizer tokenizer = tokenizer_of(spec);
  const auto ids = [&](const char* text) { return tokenizer.encode_ids(text, false); };
  EXPECT_THAT(ids("aba"), ElementsAre(7, 13));  // "▁a" is best, then "ba"; nothing is left for "▁ab"
  EXPECT_THAT(ids("ab"), ElementsAre(12));
  EXPECT_THAT(ids("bab"), ElementsAre(5, 13, 4));  // "ba" is better than "ab"
  EXPECT_THAT(ids("€"), ElementsAre(5, 8, 9, 10));
  EXPECT_THAT(ids("xyz"), ElementsAre(5, 0));  // unknown ones are one token
  EXPECT_THAT(ids(""), ElementsAre());
  EXPECT_THAT(ids(" a"), ElementsAre(5, 7));
  EXPECT_THAT(ids("a<tag>a</s>"), ElementsAre(7, 11, 7, 2));  // a space before each part, as llama.cpp has it
  EXPECT_THAT(tokenizer.encode_ids("a"), ElementsAre(1, 7));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, 7, 5, 8, 9, 10, 11}), "a €<tag>");
  spec.value("tokenizer.ggml.add_space_prefix") = gguf_bool(0);
  spec.value("tokenizer.ggml.add_bos_token") = gguf_bool(0);
  spec.value("tokenizer.ggml.add_eos_token") = gguf_bool(1);
  EXPECT_THAT(tokenizer_of(spec).encode_ids("ab a"), ElementsAre(6, 7, 2));
  EXPECT_EQ(tokenizer_of(spec).decode(std::vector<int32_t>{7, 4}), " ab");
}

TEST(GgufSentencePiece, WhatCannotBeIsRefused) {
  const auto refused = [](const char* key, std::string bytes, std::string_view part) {
    GgufSpec spec = small_sentence_piece();
    spec.value(key) = std::move(bytes);
    expect_one_line_error([&] { tokenizer_of(spec); }, part, part);
  };
  const std::vector<float> zeros(14);
  std::vector<float> bad = zeros;
  bad[4] = std::numeric_limits<float>::quiet_NaN();
  refused("tokenizer.ggml.scores", gguf_floats(bad),
          "file.gguf: \"tokenizer.ggml.scores\": that of 'b' is not");
  refused("tokenizer.ggml.scores", gguf_floats({1, 2}), "\"tokenizer.ggml.scores\" has 2 items");
  refused("tokenizer.ggml.scores", gguf_u32(14), "\"tokenizer.ggml.scores\": expected a list, got 14");
  refused("tokenizer.ggml.scores", gguf_strings(std::vector<std::string>(14)), "expected a list of numbers");
  refused("tokenizer.ggml.token_type", gguf_floats(zeros),
          "\"tokenizer.ggml.token_type\": expected a list of");
  refused("tokenizer.ggml.add_space_prefix", gguf_u32(1), "expected true or false, got 1");
  refused("tokenizer.ggml.bos_token_id", gguf_string("a"), "expected an integer from");
  GgufSpec spec = small_sentence_piece();
  spec.erase("tokenizer.ggml.scores");
  expect_one_line_error([&] { tokenizer_of(spec); }, "\"tokenizer.ggml.scores\" is missing", "no scores");
}

TEST(GgufSentencePiece, PiecesThatMakeTooManyMergesAreRefused) {
  // Each of 2,000 pieces is made of two others in as many ways as it has letters: 2.7 GB of merges.
  GgufSpec spec = small_sentence_piece();
  std::vector<std::string> tokens;
  for (size_t length = 1; length <= 2000; ++length) tokens.emplace_back(length, 'a');
  spec.value("tokenizer.ggml.tokens") = gguf_strings(tokens);
  spec.value("tokenizer.ggml.scores") = gguf_floats(std::vector<float>(tokens.size()));
  spec.erase("tokenizer.ggml.token_type");
  expect_one_line_error([&] { tokenizer_of(spec); }, "in more ways than those of any real vocabulary",
                        "ways");
  // In the square of its length, one long piece would take minutes.
  spec.value("tokenizer.ggml.tokens") = gguf_strings({"a", "b", std::string(3'000'000, 'a') + "b"});
  spec.value("tokenizer.ggml.scores") = gguf_floats({0, 0, 0});
  EXPECT_THAT(tokenizer_of(spec).encode_ids("ab", false), ElementsAre(0, 1));
}

/// The torture set and, where MULTIHEAD_DATA has them, the sentences of EWT.
std::string texts_for_oracles() {
  std::string texts = read_file(kGoldens / "torture" / "torture.txt");
  const char* data = std::getenv("MULTIHEAD_DATA");
  if (data == nullptr) return texts;
  for (const std::string& line :
       read_lines(std::filesystem::path(data) / "ud-ewt" / "en_ewt-ud-dev.conllu.gz")) {
    constexpr std::string_view kText = "# text = ";
    if (line.starts_with(kText)) texts.append("\n").append(line, kText.size());
  }
  return texts;
}

// These run only when MULTIHEAD_PYTHON names a Python with tokenizers, sentencepiece and gguf (`make oracles`).
TEST(SlowGgufTokenizerOracle, AgreesWithTheLibraryOnMoreTexts) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with sentencepiece and gguf";
  const ScratchFolder scratch;
  const std::string texts = texts_for_oracles();
  write_file_atomically(scratch / "texts", texts);
  const std::string command =
      fmt::format("{} {}/tests/oracles/gguf_goldens.py --sentencepiece {} {}", python, source_folder(),
                  scratch.path().string(), (scratch / "texts").string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  expect_answers_of_sentencepiece(scratch.path(), lines_of(texts));
}

// What we write of each is opened by Hugging Face, which gives the same ids, offsets and texts.
TEST(SlowGgufTokenizerOracle, HuggingFaceOpensWhatIsWritten) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with tokenizers";
  const ScratchFolder scratch;
  const std::string texts = texts_for_oracles();
  write_file_atomically(scratch / "texts", texts);
  std::map<std::string, Tokenizer> tokenizers;
  for (const Named& named : kNames) tokenizers.emplace(named.name, tokenizer_of(as_gguf(named)));
  tokenizers.emplace("llama", *gguf_tokenizer(GgufFile::open(kSentencePiece / "llama.gguf")));
  std::string files;
  for (const auto& [name, tokenizer] : tokenizers) {
    write_file_atomically(scratch / (name + ".json"), tokenizer.to_json());
    files += " " + (scratch / (name + ".json")).string();
  }
  const std::string command =
      fmt::format("{} {}/tests/oracles/torture_goldens.py --live {} {}{}", python, source_folder(),
                  scratch.path().string(), (scratch / "texts").string(), files);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::vector<std::string> lines = lines_of(texts);
  const json answers = json::parse(read_file(scratch / "answers.json"));
  ASSERT_EQ(answers["files"].size(), tokenizers.size());
  for (const json& file : answers["files"]) {
    SCOPED_TRACE(file["file"]);
    const Tokenizer& tokenizer = tokenizers.at(std::filesystem::path(file["file"].get<std::string>()).stem());
    ASSERT_EQ(file["texts"].size(), lines.size());
    for (size_t i = 0; i < lines.size() && !testing::Test::HasNonfatalFailure(); ++i)
      expect_answer(tokenizer, lines[i], file["texts"][i]);
  }
}

// A chat's markers are one token each whatever type the file gives them: those of llama.cpp for the end of a message.
TEST(GgufChat, MarkersAreFoundInTextWhateverTheirType) {
  const std::vector<std::string> tokens = {"<|endoftext|>",
                                           "<|im_start|>",
                                           "<|im_end|>",
                                           "<",
                                           "|",
                                           "i",
                                           "m",
                                           "_",
                                           "s",
                                           "t",
                                           "a",
                                           "r",
                                           ">",
                                           "e",
                                           "n",
                                           "d",
                                           "<|other|>"};
  for (const auto& [start, end] : {std::pair{3, 3}, {4, 4}, {1, 1}, {3, 1}, {1, 4}, {5, 1}}) {
    SCOPED_TRACE(fmt::format("{} {}", start, end));
    std::vector<int32_t> types(tokens.size(), 1);
    types[0] = 3;
    types[1] = start;
    types[2] = end;
    GgufSpec spec;
    spec.values = {{"tokenizer.ggml.model", gguf_string("gpt2")},
                   {"tokenizer.ggml.pre", gguf_string("gpt-2")},
                   {"tokenizer.ggml.tokens", gguf_strings(tokens)},
                   {"tokenizer.ggml.token_type", gguf_ints(types)},
                   {"tokenizer.ggml.merges", gguf_strings({})}};
    spec.tensors = {gguf_zeros("a", {1})};
    const GgufFile file = GgufFile::from_bytes(spec.bytes(), "file.gguf");
    const Tokenizer tokenizer = *gguf_tokenizer(file);
    EXPECT_THAT(tokenizer.encode_ids("<|im_start|>a<|im_end|>"), ElementsAre(1, 10, 2));
    EXPECT_GT(tokenizer.encode_ids("<|other|>").size(), 1u);
    EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{10, 2}), end == 4 ? "a<|im_end|>" : "a");
    std::vector<std::string> split;
    if (start != 3 && start != 4) split.emplace_back("<|im_start|>");
    if (end != 3 && end != 4) split.emplace_back("<|im_end|>");
    EXPECT_EQ(gguf_split_markers(file), split);
  }
}

}  // namespace
}  // namespace mh
