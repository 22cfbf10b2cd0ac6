// --from and --to of the verbs that run a translator of many languages on text: what they give is what the same languages in the
// folder's tokenizer_config.json give. What transformers makes of them tests/tasks/language_codes_test.cpp compares.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "multihead/folders/model_folder.h"
#include "multihead/tasks/model_text.h"
#include "multihead/text/text_languages.h"
#include "tests/cli/small_folder.h"
#include "tests/folders/folder_case.h"
#include "tests/support/places.h"

namespace mh {
namespace {

class VerbWithLanguages : public testing::TestWithParam<const char*> {
 protected:
  ScratchFolder scratch;
  const std::string folder = scratch / "nllb";
  const std::string english = scratch.write("en", "two dogs run in the park\nthe small dog sees a cat.\n"),
                    german = scratch.write("de", "two cats in the park\na small cat\n");

  VerbWithLanguages() {
    std::filesystem::copy(goldens_folder() + "/languages/nllb", folder,
                          std::filesystem::copy_options::recursive);
    say(nullptr, nullptr);
  }
  /// In the folder's file.
  void say(const nlohmann::json& source, const nlohmann::json& target) const {
    test::edit_json(folder + "/tokenizer_config.json", [&](nlohmann::json& config) {
      config["src_lang"] = source;
      config["tgt_lang"] = target;
    });
  }
  ToolResult run(const std::string& flags) const {
    std::string line = GetParam();
    // Behind a space, which no path has: a scratch folder may be called so.
    for (const auto& [name, value] : {std::pair(" MODEL", folder), std::pair(" EN", english),
                                      std::pair(" DE", german), std::pair(" OUT", scratch / "out")}) {
      for (size_t at = 0; (at = line.find(name, at)) != std::string::npos; at += value.size())
        line.replace(at, std::string(name).size(), " '" + value + "'");
    }
    std::filesystem::remove_all(scratch / "out");
    return run_tool(line + " --quiet " + flags);
  }
};

/// prune's line of them is not the same twice.
std::string without_times(const std::string& output) {
  std::string kept;
  for (const std::string& line : lines_of(output)) kept += line.starts_with("ms for") ? "" : line + "\n";
  return kept;
}

TEST_P(VerbWithLanguages, GivesWhatTheFolderGivesThatSaysThem) {
  const std::string verb = GetParam();
  const bool convert = verb.starts_with("convert"),
             long_names = convert || verb.starts_with("heads importance");
  const std::string from = long_names ? "--source-language" : "--from",
                    to = long_names ? "--target-language" : "--to";
  expect_error(run(""), 2, "nothing says its source language: give " + from + ", or put src_lang into");
  expect_error(run(from + " de"), 2,
               "nothing says its target language: give " + to + ", or put tgt_lang into");
  const ToolResult given = run(from + " de " + to + " ro"), others = run(from + " en " + to + " zho_Hant");
  EXPECT_EQ(given.status, 0) << given.err;
  EXPECT_EQ(others.status, 0) << others.err;
  say("deu_Latn", "ron_Latn");
  const ToolResult usual = run("");
  EXPECT_EQ(usual.status, 0) << usual.err;
  EXPECT_EQ(without_times(given.out), without_times(usual.out));
  const bool compares = convert || verb.starts_with("heads prune");
  if (!given.out.empty() && !compares) {
    EXPECT_NE(given.out, others.out);
  }
  expect_error(run(from + " xx"), 2, from + ": 'xx' is no language of this model");
}

INSTANTIATE_TEST_SUITE_P(
    Verbs, VerbWithLanguages,
    testing::Values(
        "score MODEL --source EN --target DE", "heads MODEL -i EN", "heads MODEL --text 'two dogs run'",
        "heads stats MODEL -i EN", "heads similar MODEL -i EN",
        "heads where MODEL -i EN --head 'decoder.0.cross_attention.0'",
        "heads importance MODEL -i EN --target DE", "heads attribution MODEL --text 'two dogs run'",
        "heads attribution MODEL -i EN --method rollout --draws 1",
        "heads patch MODEL --clean 'two mat run' --corrupt 'two hat run' --answer a --wrong the",
        "trace MODEL --text 'two dogs' --attention decoder.0.cross_attention", "view MODEL 'two dogs' -o OUT",
        "convert MODEL --out OUT --to merged --own-format --source EN --target DE",
        "heads prune MODEL --out OUT --heads decoder.0.self_attention.1 --rounds 1 --source EN --target DE"));

TEST(VerbsWithLanguages, RefuseThemOfModelsWithoutCodes) {
  for (const char* line : {"heads demo --text 'two dogs'", "heads stats demo", "trace demo --text 'two dogs'",
                           "heads attribution demo --text 'two dogs'", "check demo"}) {
    expect_error(run_tool(std::string(line) + " --to de", "two dogs\n"), 2,
                 "--to: demo has no codes of languages among which one could choose; leave it out");
  }
}

// Where nothing says the languages its texts are drawn ids.
TEST(VerbsWithLanguages, CheckReadsTextsWhereTheyAreGiven) {
  const ScratchFolder scratch;
  const std::string folder = goldens_folder() + "/languages/nllb", request = scratch / "request";
  const auto ids_of = [&](const std::string& flags) {
    const ToolResult found = run_tool("check '" + folder + "' --request '" + request + "' " + flags);
    EXPECT_EQ(found.status, 0) << found.err;
    return nlohmann::json::parse(std::ifstream(request));
  };
  const nlohmann::json drawn = ids_of(""), read = ids_of("--from de --to ro --text 'two dogs'");
  EXPECT_EQ(drawn["texts"].size(), 4u);
  ASSERT_EQ(read["texts"].size(), 1u);
  const std::vector<std::string> line = {"two dogs"};
  const ModelFolder model = load_model_folder(folder);
  EXPECT_EQ(read["texts"][0],
            ModelText(model, {.languages = language_pair(model, {"de"})}).sources(line, {})[0]);
}

}  // namespace
}  // namespace mh
