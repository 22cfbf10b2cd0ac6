// The prompts of multihead embed, on small decoders of the shapes of EmbeddingGemma and Qwen3-Embedding.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "multihead/io/npy.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kDecoders = goldens_folder() + "/sentence_decoders/",
                  kQuery = "task : search result | query : ", kDocument = "title : none | text : ";

class EmbedPrompts : public testing::Test {
 protected:
  static ToolResult embed(const std::string& flags, const std::string& input = "") {
    return run_tool("embed '" + kDecoders + "gemma' " + flags, input);
  }
  static json vector_of(const std::string& flags, const std::string& line) {
    const ToolResult found = embed(flags, line + "\n");
    EXPECT_EQ(found.status, 0) << found.err;
    return json::parse(found.out)["vector"];
  }
  const ScratchFolder scratch;
  const std::string lines = scratch.write("lines", "two dogs run .\nbirds sleep\nthe cat\n");
};

TEST_F(EmbedPrompts, ComeBeforeEveryTextByNameOrAsAText) {
  const json query = vector_of("", kQuery + "two dogs run .");
  EXPECT_EQ(vector_of("--prompt-name query", "two dogs run ."), query);
  EXPECT_EQ(vector_of("--prompt-text '" + kQuery + "'", "two dogs run ."), query);
  EXPECT_NE(vector_of("", "two dogs run ."), query);
  for (const char* none : {"--prompt-text ''", "--prompt-text="})
    EXPECT_EQ(vector_of(none, "two dogs run ."), vector_of("", "two dogs run ."));
  // The text of the output is the line.
  EXPECT_EQ(json::parse(embed("--prompt-name query", "the cat\n").out)["text"], "the cat");
  EXPECT_EQ(embed("--similarity 'the cat' 'two dogs' --prompt-name document").out,
            embed("--similarity '" + kDocument + "the cat' '" + kDocument + "two dogs'").out);
}

TEST_F(EmbedPrompts, OfLinesAndOfTheFileOfNearestAreTheirOwn) {
  const auto nearest = [&](const std::string& flags, const std::string& line) {
    return embed("--nearest 3 '" + lines + "' --quiet " + flags, line + "\n").out.substr(line.size());
  };
  const std::string bare = nearest("", "the cat"), query = nearest("", kQuery + "the cat");
  EXPECT_NE(bare, query);
  EXPECT_EQ(nearest("--prompt-name query", "the cat"), query);
  EXPECT_EQ(nearest("--prompt-text '" + kQuery + "'", "the cat"), query);
  const std::string both = nearest("--prompt-name query --document-prompt-name document", "the cat");
  EXPECT_NE(both, query);
  EXPECT_EQ(nearest("--document-prompt-name document", kQuery + "the cat"), both);
  // The same with vectors that were saved before.
  const std::string saved = scratch / "saved.npy";
  EXPECT_EQ(embed("-i '" + lines + "' --prompt-name document --format npy -o '" + saved + "'").status, 0);
  EXPECT_EQ(nearest("--vectors '" + saved + "' --prompt-name query", "the cat"), both);
}

TEST_F(EmbedPrompts, ARemarkNamesThoseOfNearestThatWereNotAskedFor) {
  const auto remarks = [&](const std::string& flags) {
    return embed("--nearest 1 '" + lines + "' " + flags, "the cat\n").err;
  };
  const std::string query = "--prompt-name query puts one before input lines",
                    document = "--document-prompt-name document puts one before lines of FILE";
  EXPECT_THAT(remarks(""), HasSubstr("the model has prompts for --nearest that were not asked for: " + query +
                                     ", " + document + "\n"));
  EXPECT_THAT(remarks("--prompt-name STS"), AllOf(HasSubstr(document), Not(HasSubstr(query))));
  EXPECT_THAT(remarks("--prompt-text ''"), AllOf(HasSubstr(document), Not(HasSubstr(query))));
  EXPECT_THAT(remarks("--document-prompt-name STS"), AllOf(HasSubstr(query), Not(HasSubstr(document))));
  EXPECT_THAT(remarks("--prompt-name query --document-prompt-name document"), Not(HasSubstr("prompt")));
  EXPECT_THAT(embed("", "the cat\n").err, IsEmpty());
  // Qwen3-Embedding's documents have an empty one.
  EXPECT_THAT(run_tool("embed '" + kDecoders + "qwen' --nearest 1 '" + lines + "'", "the cat\n").err,
              AllOf(HasSubstr(query), Not(HasSubstr("--document"))));
}

TEST_F(EmbedPrompts, TheUsualOneIsThatOfTheFolder) {
  const std::string folder = scratch / "usual";
  std::filesystem::copy(kDecoders + "gemma", folder, std::filesystem::copy_options::recursive);
  const std::string file = folder + "/config_sentence_transformers.json";
  json settings = json::parse(read_file(file));
  settings["default_prompt_name"] = "query";
  write_file_atomically(file, settings.dump());
  const auto vector = [&](const std::string& flags) {
    return json::parse(run_tool("embed '" + folder + "' " + flags, "the cat\n").out)["vector"];
  };
  EXPECT_EQ(vector(""), vector_of("--prompt-name query", "the cat"));
  EXPECT_EQ(vector("--prompt-name document"), vector_of("--prompt-name document", "the cat"));
  EXPECT_EQ(vector("--prompt-text ''"), vector_of("", "the cat"));
  const std::string nearest = "embed '" + folder + "' --nearest 3 '" + lines + "' ";
  EXPECT_EQ(run_tool(nearest, "the cat\n").out,
            run_tool(nearest + "--prompt-name query --document-prompt-name query", "the cat\n").out);
  EXPECT_THAT(run_tool(nearest, "the cat\n").err,
              AllOf(HasSubstr("--document-prompt-name document"), Not(HasSubstr(" --prompt-name"))));
  // Other verbs read texts behind it, too.
  EXPECT_EQ(json::parse(run_tool("info --json '" + folder + "'").out)["sentences"]["prompts"]["document"],
            kDocument);
  EXPECT_THAT(
      run_tool("info '" + folder + "'").out,
      HasSubstr("prompts       STS 'task : similarity | query : ', document 'title : none | text : '"));
}

TEST_F(EmbedPrompts, WhatCannotBeIsOneLine) {
  expect_error(embed("--prompt-name passage", "a\n"), 2,
               "gemma has no prompt 'passage'; it has 'STS', 'document', 'query'");
  expect_error(embed("--nearest 1 '" + lines + "' --document-prompt-name passage", "a\n"), 2,
               "gemma has no prompt 'passage'; it has");
  expect_error(embed("--prompt-name query --prompt-text x", "a\n"), 2,
               "--prompt-name and --prompt-text are both given");
  expect_error(embed("--prompt-text \"$(printf '\\377')\"", "a\n"), 2,
               "--prompt-text: byte 1 (0xff) is not UTF-8");
  expect_error(embed("--document-prompt-name query", "a\n"), 2, "--nearest");
  expect_error(embed("--nearest 1 '" + lines + "' --vectors x --document-prompt-name query", "a\n"), 2,
               "--vectors and --document-prompt-name cannot be given together");
  expect_error(
      run_tool("embed '" + goldens_folder() + "/sentences/plain' --quiet --prompt-name query", "a\n"), 2,
      "plain has no prompt 'query', and no others in its config_sentence_transformers.json");
  expect_error(run_tool("embed '" + goldens_folder() + "/fill/bert' --quiet --prompt-text x --input-pair '" +
                            scratch.write("one", "b\n") + "'",
                        "a\n"),
               2, "the prompt 'x' is for a single text");
}

// Its tokens see both sides, so it writes nothing.
TEST_F(EmbedPrompts, WhatEmbedsInSuchAWayGeneratesNothing) {
  const std::string gemma = " '" + kDecoders + "gemma' ";
  expect_error(run_tool("generate" + gemma + "--prompt cat"), 2,
               "gemma holds a gemma3_text model, which reads a text instead of continuing it");
  expect_error(run_tool("score" + gemma, "cat\n"), 2,
               "gemma holds a gemma3_text model, which predicts no next");
  expect_error(run_tool("fill" + gemma, "cat\n"), 2, "without a head for masked words");
  EXPECT_EQ(run_tool("generate '" + kDecoders + "qwen' --prompt cat --max-new-tokens 2 --quiet").status, 0);
  EXPECT_EQ(run_tool("heads" + gemma + "--text 'two dogs run .'").status, 0);
  EXPECT_EQ(run_tool("trace" + gemma + "--text 'two dogs run .'").status, 0);
}

}  // namespace
}  // namespace mh
