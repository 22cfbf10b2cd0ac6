// Decoders that embed texts behind prompts, with the vectors of sentence-transformers: of the shapes of EmbeddingGemma, whose tokens
// see both sides, and of Qwen3-Embedding. tests/oracles/sentence_decoder_goldens.py makes the goldens.
#include "tests/tasks/sentence_folder_case.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

class SentenceDecoders : public test::SentenceFolder {
 protected:
  SentenceDecoders() : SentenceFolder(fs::path(goldens_folder()) / "sentence_decoders") {
    within = 6e-6;  // processors without AVX-512 round otherwise
  }
  static constexpr int64_t kGemma = 11, kQwen = 14;  // numbers of a vector
};

TEST_F(SentenceDecoders, VectorsAreThoseOfSentenceTransformersWithEachPrompt) {
  expect_near(vectors_of(goldens / "gemma"), "gemma", kGemma);
  for (const char* name : {"query", "document", "STS"})
    expect_near(vectors_of(goldens / "gemma", {.prompt_name = name}), std::string("gemma ") + name, kGemma);
  expect_near(vectors_of(goldens / "gemma", {.prompt = "find birds : "}), "gemma own", kGemma);
  expect_near(vectors_of(goldens / "qwen"), "qwen", kQwen);
  expect_near(vectors_of(goldens / "qwen", {.prompt_name = "query"}), "qwen query", kQwen);
  expect_near(vectors_of(goldens / "qwen", {.prompt_name = "document"}), "qwen", kQwen);
  expect_near(vectors_of(goldens / "qwen", {.prompt = "find birds : "}), "qwen own", kQwen);
}

// The prompt that is used is counted, not that of the folder.
TEST_F(SentenceDecoders, EachPromptMayBeLeftOutOfThePooling) {
  for (const auto& [name, width] : {std::pair{std::string("gemma"), kGemma}, {std::string("qwen"), kQwen}}) {
    const fs::path folder = copy_of(name);
    edit(folder / "1_Pooling/config.json", [](json& config) { config["include_prompt"] = false; });
    for (const json& usual : {json(), json("query"), json("document")}) {
      edit(folder / "config_sentence_transformers.json",
           [&](json& config) { config["default_prompt_name"] = usual; });
      expect_near(vectors_of(folder, {.prompt_name = "query"}), name + " behind query", width);
      expect_near(vectors_of(folder, {.prompt = "find birds : "}), name + " behind own", width);
      expect_near(vectors_of(folder, {.prompt = ""}), name, width);
    }
    edit(folder / "config_sentence_transformers.json",
         [&](json& config) { config["default_prompt_name"] = "query"; });
    expect_near(vectors_of(folder), name + " behind query", width);
  }
}

TEST_F(SentenceDecoders, PromptsThatAreNotThereAreNamedWithThoseThatAre) {
  const SentenceModel gemma = load_sentence_model(goldens / "gemma");
  const auto refused = [](const SentenceModel& model, const EmbedTextOptions& options, const char* words) {
    EXPECT_THAT([&] { embed_text(model, {"cat"}, options); },
                ThrowsMessage<UsageError>(testing::AllOf(HasSubstr(words), testing::Not(HasSubstr("\n")))));
  };
  refused(gemma, {.prompt_name = "passage"},
          "gemma has no prompt 'passage'; it has 'STS', 'document', 'query'");
  refused(gemma, {.prompt_name = "a\nb"}, "has no prompt 'a\\u000ab'");
  refused(gemma, {.prompt_name = "query", .prompt = "x"}, "`prompt_name` and `prompt` are both given");
  refused(gemma, {.prompt = "a\xff"}, "`prompt`: byte 2 (0xff) is not UTF-8");
  const fs::path bare = copy_of("gemma");
  fs::remove(bare / "config_sentence_transformers.json");
  refused(
      load_sentence_model(bare), {.prompt_name = "query"},
      "has no prompt 'query', and no others in its config_sentence_transformers.json; leave the name out");
  refused(load_sentence_model(test::kSentenceFolders / "plain"), {.prompt_name = "query"}, "and no others");
}

}  // namespace
}  // namespace mh
