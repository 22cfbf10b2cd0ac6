// The verbs of multihead heads, on the translator that comes with multihead and on a small model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "multihead/base/file.h"
#include "multihead/base/terminal_text.h"
#include "multihead/data/alignment.h"
#include "multihead/io/lines.h"
#include "tests/cli/run_tool.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;

int widest_line(const std::string& text) {
  int widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, display_width(line));
  return widest;
}

class HeadsVerbs : public testing::Test {
 protected:
  HeadsVerbs() {
    std::string made;
    if (run_tool("data grammar --out '" + corpus +
                 "' --train 1 --valid 1 --test 23 --compositional 2 --quiet")
            .status != 0)
      throw std::runtime_error("no corpus");
    text = " -i '" + corpus + "/test.en' --target '" + corpus + "/test.de'";
    trees = " --conllu '" + corpus + "/test.en.conllu' --target-conllu '" + corpus + "/test.de.conllu'";
    links = " --alignment '" + corpus + "/test.align'";
  }

  ScratchFolder scratch;
  std::string corpus = scratch / "corpus", text, trees, links;
};

TEST_F(HeadsVerbs, TheirTablesFitEightyColumns) {
  for (const std::string& command :
       {"stats demo" + text, "relations demo" + trees, "relations demo" + trees + " --relation det",
        "relations demo" + trees + " --probe 1", "alignment demo" + text + links,
        "alignment demo" + text + " --no-gold"}) {
    const ToolResult result = run_tool("heads " + command);
    EXPECT_EQ(result.status, 0) << command << "\n" << result.err;
    EXPECT_LE(widest_line(result.out), 80) << command << "\n" << result.out;
    EXPECT_THAT(result.out, HasSubstr("23 sentences")) << command;
  }
}

TEST_F(HeadsVerbs, MakeTheirReportsAgainFromTheirOptions) {
  for (const std::string& command : {"stats demo" + text, "alignment demo" + text + links,
                                     "where demo --all" + text, "similar demo" + text}) {
    const std::string first = run_tool("heads " + command + " --max-batch-tokens 90 --json").out;
    const std::string file = scratch.write("report.json", first);
    EXPECT_EQ(json::parse(first)["options"]["max_batch_tokens"], 90) << command;
    EXPECT_EQ(run_tool("heads " + command + " --json --options '" + file + "'").out, first) << command;
  }
}

TEST_F(HeadsVerbs, StatsHaveEveryHeadOnce) {
  const ToolResult result = run_tool("heads stats demo" + text + " --json");
  ASSERT_EQ(result.status, 0) << result.err;
  const json report = json::parse(result.out);
  EXPECT_EQ(report["schema"], 1);
  EXPECT_EQ(report["targets"], "given");
  EXPECT_EQ(report["heads"].size(), 24u);
  std::set<std::string> names;
  for (const json& head : report["heads"]) {
    names.insert(head["head"]);
    EXPECT_GE(head["entropy"], 0);
    EXPECT_LE(head["on_first"], 1 + 1e-6);
    const bool keys_are_source = head["head"].get<std::string>().find("decoder") == std::string::npos ||
                                 head["head"].get<std::string>().find("cross") != std::string::npos;
    EXPECT_EQ(head["on_rarest"].is_number(), keys_are_source) << head;
    EXPECT_FALSE(head.contains("induction")) << "a translator copies its source";
  }
  EXPECT_EQ(names.size(), 24u);
}

TEST_F(HeadsVerbs, AMutedHeadChangesWhatTheNextLayerReads) {
  const std::string command = "heads stats demo" + text + " --json";
  const json plain = json::parse(run_tool(command).out),
             muted = json::parse(run_tool(command + " --mute 'encoder.0.self_attention.*'").out);
  EXPECT_EQ(plain["heads"][0], muted["heads"][0]) << "the weights of layer 0 stay";
  EXPECT_NE(plain["heads"][4], muted["heads"][4]);
}

TEST_F(HeadsVerbs, RelationsSayWhichThereAre) {
  const ToolResult wrong = run_tool("heads relations demo" + trees + " --relation verb");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--relation verb: the trees have "));
  EXPECT_THAT(wrong.err, HasSubstr("det"));
  const ToolResult rare = run_tool("heads relations demo" + trees + " --least-support 99999");
  EXPECT_EQ(rare.status, 0);
  EXPECT_THAT(rare.out, HasSubstr("No relation has 99,999 words on each half of the sentences"));
  EXPECT_THAT(rare.out, testing::Not(HasSubstr("offset")));  // no words about a table that is not there
  write_file_atomically(corpus + "/one.en", "two dogs run .\n");
  write_file_atomically(corpus + "/one.align", "\n");
  const ToolResult unlinked = run_tool("heads alignment demo -i '" + corpus + "/one.en' --target '" + corpus +
                                       "/one.en' --alignment '" + corpus + "/one.align'");
  EXPECT_EQ(unlinked.status, 2);
  EXPECT_THAT(unlinked.err, HasSubstr("its alignments link no words"));
  const ToolResult none = run_tool("heads relations demo" + text);
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("give --conllu FILE"));
}

TEST_F(HeadsVerbs, NamesOfRelationsCannotTurnTheLineRound) {
  const std::string turns = "\u202e", name = "ob" + turns + "j";
  std::string trees;
  for (int i = 0; i < 40; ++i)
    trees += "1\tsee\t_\tX\t_\t_\t0\troot\t_\t_\n2\tdogs\t_\tX\t_\t_\t1\t" + name + "\t_\t_\n\n";
  const std::string file = scratch.write("turned", trees);
  for (const std::string& flags :
       {std::string(), " --relation '" + name + "'", std::string(" --relation x")}) {
    const ToolResult found = run_tool("heads relations demo --conllu '" + file + "'" + flags);
    EXPECT_EQ(found.status, flags.ends_with(" x") ? 2 : 0) << found.err;
    EXPECT_EQ((found.out + found.err).find(turns), std::string::npos) << flags;
    EXPECT_THAT(found.out + found.err, testing::AnyOf(HasSubstr("ob.j"), HasSubstr("ob\\u202ej"))) << flags;
  }
}

TEST_F(HeadsVerbs, TreesMayHaveBlankLinesAndWordsOfNoBreakSpaces) {
  const auto row = [](int id, const char* form, int head) {
    return std::to_string(id) + "\t" + form + "\t_\tX\t_\t_\t" + std::to_string(head) +
           (head == 0 ? "\troot\t_\t_\n" : "\tnsubj\t_\t_\n");
  };
  const std::string dogs = row(1, "dogs", 2) + row(2, "run", 0), plain = dogs + "\n" + dogs + "\n";
  const auto relations = [&](const std::string& bytes, const std::string& flags = "") {
    return run_tool("heads relations demo --least-support 1 --conllu '" + scratch.write("trees", bytes) +
                    "'" + flags);
  };
  const ToolResult expected = relations(plain);
  ASSERT_EQ(expected.status, 0) << expected.err;
  for (const std::string& bytes : {"\n" + dogs + "\n\n" + dogs + "\n\n", dogs + " \n" + dogs, plain + "\n\n"})
    EXPECT_EQ(relations(bytes).out, expected.out) << bytes;
  EXPECT_EQ(relations(plain + row(1, "\u00a0", 2) + row(2, "run", 0)).status, 0);
  const ToolResult other = relations(plain, " -i '" + scratch.write("other", "dogs run\ncats run\n") + "'");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err,
              HasSubstr(scratch / "other" + " sentence 2: expected the text to go on with 'dogs'"));
}

TEST_F(HeadsVerbs, RelationsAsJsonHaveBothHalves) {
  const json report =
      json::parse(run_tool("heads relations demo" + trees + " --probe 1 --least-support 3 --json").out);
  ASSERT_FALSE(report["best"].empty());
  EXPECT_EQ(report["best"][0]["relation"], "all");
  EXPECT_FALSE(report["random"].empty());
  EXPECT_EQ(report["relations"][0]["on_half"].size(), 2u);
  EXPECT_EQ(report["probe"]["heads"].size(), 8u) << "those of the encoder";
  EXPECT_GE(report["probe"]["score"], report["random_probe"]["score"]);
}

TEST_F(HeadsVerbs, AlignmentWithoutGoldIsAsGoodAsTheBestHeadByGold) {
  const json by_gold =
      json::parse(run_tool("heads alignment demo" + text + links + " --json").out)["alignment"];
  double best = 1;
  for (const json& score : by_gold) {
    if (!score["head"].get<std::string>().ends_with("mean"))
      best = std::min(best, score["error_rate"].get<double>());
  }
  const std::string made = corpus + "/made.align";
  const json report =
      json::parse(run_tool("heads alignment demo" + text + " --no-gold --json --pharaoh '" + made + "'").out);
  EXPECT_EQ(report["alignment"].size(), by_gold.size());
  EXPECT_EQ(report["chosen"]["query"], "predicts");
  EXPECT_FALSE(report["chosen"]["heads"].empty());
  const auto read = [](const std::string& path) {
    std::vector<Alignment> all;
    for (const std::string& line : read_lines(path)) all.push_back(parse_pharaoh(line));
    return all;
  };
  const std::vector<Alignment> found = read(made), gold = read(corpus + "/test.align");
  ASSERT_EQ(found.size(), gold.size());
  size_t right = 0, all = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    all += found[i].size() + gold[i].size();
    for (const auto& link : found[i]) right += std::count(gold[i].begin(), gold[i].end(), link) > 0 ? 1 : 0;
  }
  EXPECT_LT(1 - 2 * static_cast<double>(right) / static_cast<double>(all), best + 0.01);

  EXPECT_THAT(run_tool("heads alignment demo" + text + " --no-gold").out,
              HasSubstr("\nchosen: decoder.1.cross_"));
  EXPECT_THAT(run_tool("heads alignment demo" + text + links + " --no-gold").err,
              HasSubstr("--alignment and --no-gold cannot be given together"));
  for (const char* alone : {"--save", "--pharaoh x", "--pairs 3"}) {
    EXPECT_THAT(run_tool("heads alignment demo" + text + links + " " + alone).err,
                HasSubstr("requires --no-gold"));
  }
  EXPECT_THAT(run_tool("heads alignment demo" + text + " --no-gold --save").err,
              HasSubstr("is no folder whose"));
}

TEST_F(HeadsVerbs, AlignmentFindsTheHeadsThatAlign) {
  const json report = json::parse(run_tool("heads alignment demo" + text + links + " --json").out);
  EXPECT_EQ(report["alignment"].size(), 2u * 2 * (4 + 1));
  double best = 1;
  for (const json& score : report["alignment"]) best = std::min(best, score["error_rate"].get<double>());
  EXPECT_LT(best, report["alignment_baseline"]["error_rate"]);
  EXPECT_THAT(run_tool("heads alignment demo" + text).err, HasSubstr("give --alignment FILE"));
  const ToolResult beyond = run_tool("heads alignment demo" + text + " --alignment '" +
                                     scratch.write("links", "0-99\n" + std::string(22, '\n')) + "'");
  EXPECT_EQ(beyond.status, 1);
  EXPECT_THAT(beyond.err, HasSubstr("0-99 points outside a sentence"));
}

TEST_F(HeadsVerbs, TakeNoFlagsOfTheVerbAbove) {
  const ToolResult flag = run_tool("heads stats demo" + text + " --svg x.svg");
  EXPECT_EQ(flag.status, 2);
  EXPECT_THAT(flag.err, HasSubstr("--svg is a flag of multihead heads MODEL, not of multihead heads stats"));
  EXPECT_THAT(run_tool("heads stats demo more" + text).err, HasSubstr("more is one argument too many"));
  EXPECT_THAT(run_tool("heads stat demo" + text).err, HasSubstr("stat is no verb; did you mean stats?"));
  EXPECT_THAT(run_tool("heads").err, HasSubstr("the model folder is missing"));
}

TEST_F(HeadsVerbs, ReadAPipeOnce) {
  const std::string target = " --target '" + corpus + "/test.de'", lines = " -i '" + corpus + "/test.en'";
  const ToolResult piped =
      run_shell("mkfifo '" + scratch / "pipe" + "'; cat '" + corpus + "/test.en' >'" + scratch / "pipe" +
                "' & $MULTIHEAD heads stats demo -i '" + scratch / "pipe" + "'" + target);
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_EQ(piped.out, run_tool("heads stats demo" + lines + target).out);
  const ToolResult refused = run_tool("heads stats demo" + lines + " --target '" + scratch / "pipe" + "'");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("is a pipe, and may be read twice; write it to a file first"));
}

TEST_F(HeadsVerbs, NameAHeadThatIsNotThere) {
  const ToolResult result = run_tool("heads stats demo" + text + " --mute encoder.0.self_attention.9");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("encoder.0.self_attention"));
}

}  // namespace
}  // namespace mh
