// Folders with tokenizer.model, or spm.model, and no tokenizer.json against the answers of AutoTokenizer (tests/oracles/family_goldens.py).
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/folder_tokenizers.h"
#include "multihead/text/tokenizer.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"
#include "tests/text/answers.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::IsEmpty;

const std::filesystem::path kPieces = std::filesystem::path(goldens_folder()) / "families";

FolderTokenizers tokenizers_of_pieces(const std::string& model, const std::string& model_type,
                                      const json& said) {
  const char* file = model_type == "deberta-v2" ? "spm.model" : "tokenizer.model";
  return read_folder_tokenizers(MemoryFolder({{file, read_file(model)},
                                              {"config.json", json{{"model_type", model_type}}.dump()},
                                              {"tokenizer_config.json", said.dump()}},
                                             "memory"));
}

void expect_folders(const json& goldens) {
  ASSERT_EQ(goldens["folders"].size(), 8u);
  for (const json& one : goldens["folders"]) {
    SCOPED_TRACE(one["model_type"].dump() + one["said"].dump());
    const FolderTokenizers found =
        tokenizers_of_pieces(kPieces / one["model"].get<std::string>(), one["model_type"], one["said"]);
    EXPECT_THAT(found.remarks, IsEmpty());
    ASSERT_TRUE(found.source);
    EXPECT_EQ(found.source->size(), one["size"].get<int32_t>());
    const json& lines = goldens["lines"];
    ASSERT_EQ(one["texts"].size(), lines.size());
    for (size_t i = 0; i < lines.size() && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(lines[i].dump());
      const auto ids = found.source->encode_ids(lines[i].get<std::string>());
      EXPECT_EQ(hash_of(ids), one["texts"][i][0].get<std::string>()) << json(ids).dump();
      const std::string decoded = found.source->decode(ids);
      EXPECT_EQ(hash_of_bytes(decoded), one["texts"][i][1].get<std::string>()) << decoded;
    }
  }
}

TEST(PiecesFolder, GivesTheTokensOfTransformers) {
  expect_folders(json::parse(read_file(kPieces / "goldens.json")));
}

TEST(SlowPiecesFolderOracle, GivesTheTokensOfTransformersOnTwoThousandLines) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with transformers";
  const test::ScratchFolder scratch;
  const std::string command = fmt::format("{} {}/tests/oracles/family_goldens.py --live {} 16 2000", python,
                                          source_folder(), (scratch / "answers.json").string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  expect_folders(json::parse(read_file(scratch / "answers.json")));
}

TEST(PiecesFolder, OtherModelsAndMissingTokensAreRefused) {
  const auto complaint = [](const std::filesystem::path& model, const json& said) -> std::string {
    try {
      tokenizers_of_pieces(model, "llama", said);
    } catch (const FormatError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(complaint(kPieces.parent_path() / "sentencepiece" / "unigram.model",
                      {{"tokenizer_class", "LlamaTokenizer"}}),
            "memory, tokenizer.model: a SentencePiece model of type 1 (Unigram) is not supported here; "
            "expected 2 (BPE)");
  EXPECT_EQ(complaint(kPieces / "llama_pieces.model", {{"bos_token", "<bos>"}, {"add_bos_token", true}}),
            "memory, tokenizer.model: the vocabulary lacks the bos_token '<bos>'");
}

}  // namespace
}  // namespace mh
