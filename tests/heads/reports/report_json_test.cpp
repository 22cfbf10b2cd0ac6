// The JSON of heads is what docs/file-formats.md says: every field is there, and no other.
#include "multihead/heads/reports/report_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "lab/grammar/grammar.h"
#include "tests/heads/reports/json_page.h"
#include "tests/heads/small_translator.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::Contains;

TEST(ReportJson, HasTheFieldsThatThePageDescribes) {
  const GrammarCorpus corpus = make_grammar_corpus({.train = 2, .valid = 1, .test = 7, .compositional = 1});
  HeadsText text;
  std::vector<std::string> lines;
  for (const GrammarSentence& sentence : corpus.test) {
    text.sources.push_back(text_of(sentence.source));
    text.targets.push_back(text_of(sentence.target));
    text.source_trees.push_back(sentence.source);
    text.target_trees.push_back(sentence.target);
    text.alignments.push_back(sentence.alignment);
    lines.insert(lines.end(), {text.sources.back(), text.targets.back()});
  }
  const ModelFolder folder = small_translator(lines);

  const HeadReport report = inspect_heads(folder, text);
  const Observation sentence = observe_text(folder, text.sources[0], text.targets[0]);
  const std::vector<HeadName> heads{{"decoder.0.cross_attention", 2}};
  const json all =
      json::parse(report_json({.model = "small", .report = &report, .sentence = &sentence, .heads = heads}));
  EXPECT_EQ(all["schema"], kHeadsSchema);
  EXPECT_EQ(all["model"], "small");
  EXPECT_EQ(all["heads"].size(), 9u);
  const ConstMatrixView weights = sentence.weights(heads[0]);
  const json& rows = all["text"]["weights"]["decoder.0.cross_attention.2"];
  ASSERT_EQ(std::ssize(rows), weights.rows);
  EXPECT_EQ(rows[1][0].get<float>(), weights(1, 0));

  std::set<std::string> keys;
  collect_keys(all, keys);
  const std::set<std::string> described = names_on_the_page("The JSON of heads");
  for (const std::string& key : keys) EXPECT_THAT(described, Contains(key));
  for (const std::string& name : described) {
    const bool is_a_field = name.find_first_of(" -./():") == std::string::npos && name != "given" &&
                            !name.starts_with("to_") && name != "read_by_head" && name != "obj" &&
                            name != "predicts" && name != "reads";
    if (is_a_field) {
      EXPECT_THAT(keys, Contains(name));
    }
  }
}

TEST(ReportJson, SaysWhichSchemaItIsWhateverIsLeftOut) {
  EXPECT_EQ(json::parse(report_json({.model = "none"})),
            (json{{"schema", 1},
                  {"model", "none"},
                  {"precision", "same"},
                  {"kernels", {{"numbers", "float32"}, {"blocks", "float32"}}}}));
}

}  // namespace
}  // namespace mh
