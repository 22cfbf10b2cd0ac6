// multihead view: the page is written, says what it opens at, and is refused in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "multihead/folders/shipped_folder.h"
#include "multihead/text/base64.h"
#include "tests/cli/run_tool.h"
#include "tests/cli/small_folder.h"
#include "tests/heads/reports/read_page.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(View, WritesAPageAndSaysWhatItShows) {
  const ScratchFolder scratch;
  const std::string page = scratch / "heads.html";
  const ToolResult result = run_tool(
      "view demo 'the small dog sees a cat .' 'a man runs .' --walk 1 --mute encoder.0.self_attention.1 -o "
      "'" +
      page + "'");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("head "));
  EXPECT_THAT(result.out, HasSubstr("heads.html: 0."));
  const json header = read_page(scratch.read("heads.html")).header;
  EXPECT_EQ(header["schema"], 1);
  EXPECT_EQ(header["mode"], "one");
  EXPECT_THAT(header["made"]["command"].get<std::string>(),
              HasSubstr("view demo 'the small dog sees a cat .' 'a man runs .' --walk 1 --mute"));
  const json& run = header["runs"][0];
  EXPECT_EQ(run["texts"].size(), 2u);
  EXPECT_EQ(run["walk"]["attention"], "encoder.1.self_attention");
  EXPECT_EQ(run["hash"].get<std::string>().size(), 64u);
}

TEST(View, SaysWhatCountsUnlessToldNotTo) {
  const ScratchFolder scratch;
  const auto page_of = [&](const std::string& flags) {
    const ToolResult result =
        run_tool("view demo 'a cat runs .' " + flags + " -o '" + scratch / "a.html" + "'");
    EXPECT_EQ(result.status, 0) << result.err;
    return read_page(scratch.read("a.html")).header;
  };
  const json run = page_of("")["runs"][0];
  EXPECT_EQ(run["evidence"]["importance"]["heads"].size(), 24u);
  EXPECT_EQ(run["evidence"]["ablation"]["heads"].size(), 24u);
  EXPECT_TRUE(run["texts"][0]["attribution"]["tokens"][0]["scores"].contains("rollout"));
  EXPECT_EQ(run["texts"][0]["contributions"]["answer"]["text"], run["texts"][0]["attribution"]["token"]);
  EXPECT_EQ(run["texts"][0]["lens"]["says"], "words");
  const json header = page_of("--no-importance"), without = header["runs"][0];
  EXPECT_TRUE(without["evidence"]["importance"].is_null());
  EXPECT_TRUE(without["evidence"]["ablation"].is_null());
  for (const char* analysis : {"attribution", "contributions", "lens"})
    EXPECT_TRUE(without["texts"][0][analysis].is_null()) << analysis;
  EXPECT_THAT(header["made"]["command"].get<std::string>(), HasSubstr("--no-importance"));
  const json muted = page_of("--mute encoder.0.self_attention.1")["runs"][0];
  for (const char* analysis : {"attribution", "contributions"})
    EXPECT_THAT(muted["texts"][0][analysis]["why"].get<std::string>(), HasSubstr("Heads are changed"));
  EXPECT_TRUE(muted["texts"][0]["lens"].contains("values"));
  EXPECT_FALSE(muted["evidence"]["ablation"].is_null());
}

TEST(View, NamesTheHeadThatGoesFromTheArticleToItsNoun) {
  const ScratchFolder scratch;
  ASSERT_EQ(run_tool("data grammar --out '" + scratch / "corpus" +
                     "' --train 1 --valid 1 --test 200 --compositional 2 --quiet")
                .status,
            0);
  const std::string test = scratch / "corpus/test";
  const ToolResult result =
      run_tool("view demo 'the small dog sees a cat .' --conllu '" + test + ".en.conllu' --target-conllu '" +
               test + ".de.conllu' --alignment '" + test + ".align' -o '" + scratch / "heads.html" + "'");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Encoder 1, head 1: article → noun, 9"));
  const json header = read_page(scratch.read("heads.html")).header;
  EXPECT_EQ(header["opens"]["by"], "relation");
  EXPECT_EQ(header["opens"]["query"], 0) << "an article is in focus";
  EXPECT_EQ(header["runs"][0]["evidence"]["of"], "200 sentences of test.en.conllu");
  EXPECT_FALSE(header["runs"][0]["evidence"]["alignment"].is_null());
}

TEST(View, ShowsTwoModelsOnOneText) {
  const ScratchFolder scratch;
  const ToolResult result =
      run_tool("view demo 'a cat runs .' --with demo -o '" + scratch / "two.html" + "'");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(read_page(scratch.read("two.html")).header["mode"], "compare");
}

TEST(View, MeasuresTwoModelsOnOnePipe) {
  const ScratchFolder scratch;
  const ToolResult result =
      run_shell("mkfifo '" + scratch / "pipe" + "'; printf 'a cat runs .\\na dog sees a cat .\\n' >'" +
                scratch / "pipe" + "' & $MULTIHEAD view demo 'a cat runs .' --with demo --corpus '" +
                scratch / "pipe" + "' -o '" + scratch / "two.html" + "'");
  ASSERT_EQ(result.status, 0) << result.err;
  for (const json& run : read_page(scratch.read("two.html")).header["runs"])
    EXPECT_EQ(run["evidence"]["of"], "2 sentences of pipe");
}

// A name that begins with a dash is a file's, also for the program that opens it.
TEST(View, OpensWhatIsCalledLikeAFlag) {
  const ScratchFolder scratch;
  const std::string program = scratch / "xdg-open", page = "-x.html";
  scratch.write("xdg-open", "#!/bin/sh\nprintf '%s' \"$1\" >opened\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const ToolResult result = run_shell("cd '" + scratch / "" +
                                      "' && PATH=\"$PWD:$PATH\" \"$MULTIHEAD\" view demo "
                                      "'a cat runs .' --no-importance --open -o " +
                                      page);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(scratch.read("opened"), "./-x.html");
}

// A report is shown beside the model that it is of.
TEST(View, ShowsTheCircuitThatAReportHas) {
  const ScratchFolder scratch;
  const std::string circuit = scratch / "c.json";
  const ToolResult made = run_tool(
      "heads circuit demo --clean 'the small dog sees a cat .' --corrupt 'the small cat sees a cat .' "
      "--answer Hund --wrong Katze --prefix 'der kleine' --random 3 --json -o '" +
      circuit + "'");
  ASSERT_EQ(made.status, 0) << made.err;
  const ToolResult result = run_tool("view demo 'a cat runs .' --with demo --no-importance --circuit '" +
                                     circuit + "' -o '" + scratch / "two.html" + "'");
  ASSERT_EQ(result.status, 0) << result.err;
  const json header = read_page(scratch.read("two.html")).header;
  EXPECT_EQ(header["runs"][0]["circuit"]["edges_of_model"], 529);
  EXPECT_FALSE(header["runs"][0]["circuit"]["edges"].empty());
  EXPECT_TRUE(header["runs"][0]["retrieval"].is_null());
  EXPECT_TRUE(header["runs"][1]["circuit"].is_null());
  EXPECT_THAT(header["made"]["command"].get<std::string>(), HasSubstr(" --circuit "));
  const ToolResult other =
      run_tool("view demo 'a cat runs .' --retrieval '" + circuit + "' -o '" + scratch / "none.html" + "'");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(
      other.err,
      HasSubstr("c.json: expected a report of `multihead heads retrieval --json`, got one of \"circuit\""));
  EXPECT_EQ(std::count(other.err.begin(), other.err.end(), '\n'), 1) << other.err;
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "none.html"));
}

// The model in the page is the files of its folder, and the library that opens them.
TEST(View, PutsTheModelIntoALivePage) {
  const ScratchFolder scratch;
  const ToolResult result =
      run_tool("view demo 'a cat runs .' --no-importance --live -o '" + scratch / "live.html" + "'");
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string html = scratch.read("live.html");
  const auto has = [](const std::string& page, const char* text) {
    return page.find(text) != std::string::npos;
  };
  EXPECT_TRUE(has(html, " 'wasm-unsafe-eval'; worker-src blob:\""));
  EXPECT_FALSE(has(html, "{live}") || has(html, "{live-policy}"));
  const auto between = [&](const std::string& begin, size_t from) {
    const size_t at = html.find(begin, from) + begin.size();
    return html.substr(at, html.find("</script>", at) - at);
  };
  const json live = json::parse(between("<script id=\"live\" type=\"application/json\">", 0));
  EXPECT_EQ(live["name"], "demo");
  EXPECT_EQ(live["run"]["importance"], false);
  EXPECT_EQ(live["files"][0]["name"], "multihead.wasm");
  const std::string element = "<script class=\"live\" type=\"text/plain\">";
  size_t at = 0, parts = 0;
  for (const json& file : live["files"]) {
    std::string base64;
    for (int part = 0; part < file["parts"].get<int>(); ++part, ++parts) {
      at = html.find(element, at + 1);
      ASSERT_NE(at, std::string::npos);
      base64 += between(element, at);
    }
    const std::string bytes = inflated(from_base64(base64).value(), file["bytes"].get<size_t>());
    if (file["name"] == "multihead.wasm") {
      EXPECT_EQ(bytes.substr(0, 4), std::string("\0asm", 4));
    } else {
      EXPECT_EQ(bytes, open_shipped_folder()->read(file["name"].get<std::string>())) << file["name"];
    }
  }
  EXPECT_EQ(html.find(element, at + 1), std::string::npos);
  const ToolResult plain =
      run_tool("view demo 'a cat runs .' --no-importance -o '" + scratch / "plain.html" + "'");
  ASSERT_EQ(plain.status, 0) << plain.err;
  const std::string other = scratch.read("plain.html");
  EXPECT_FALSE(has(other, "{live}") || has(other, "{live-policy}") || has(other, "worker-src"));
}

TEST(View, ShowsTheHeadsThatAReportSaysAlign) {
  const ScratchFolder scratch;
  scratch.write("lines.en", "the small dog sees a cat .\na man runs .\n");
  const std::string aligners = scratch / "a.json";
  const ToolResult made = run_tool("heads alignment demo --no-gold -i '" + scratch / "lines.en" +
                                   "' --json -o '" + aligners + "'");
  ASSERT_EQ(made.status, 0) << made.err;
  const std::string page = "' -o '" + scratch / "heads.html" + "'";
  const ToolResult result =
      run_tool("view demo 'a cat runs .' --with demo --no-importance --aligners '" + aligners + page);
  ASSERT_EQ(result.status, 0) << result.err;
  const json header = read_page(scratch.read("heads.html")).header;
  EXPECT_EQ(header["runs"][0]["aligners"]["sentences"], 2);
  EXPECT_FALSE(header["runs"][0]["aligners"]["chosen"]["heads"].empty());
  EXPECT_TRUE(header["runs"][1]["aligners"].is_null());
  const ToolResult other = run_tool("view demo 'a cat runs .' --circuit '" + aligners + page);
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(
      other.err,
      HasSubstr("a.json: expected a report of `multihead heads circuit --json`, got one of \"alignment\""));
  EXPECT_EQ(std::count(other.err.begin(), other.err.end(), '\n'), 1) << other.err;
}

TEST(View, RefusesInOneLineAndWritesNothing) {
  const ScratchFolder scratch;
  const std::string page = " -o '" + scratch / "heads.html" + "'";
  for (const auto& [command, says] : {
           std::pair("view demo", "give a text to look at, or a file of them with -i"),
           std::pair("view demo ''", "TEXT: expected a text, got nothing"),
           std::pair("view demo 'a cat .' --head encoder.9.self_attention.0", "encoder.0.self_attention"),
           std::pair("view demo 'a cat .' --walk encoder.9.self_attention", "encoder.0.self_attention"),
           std::pair("view demo 'a cat .' 'a dog .' --target 'eine Katze .'",
                     "give --target once for each text"),
           std::pair("view demo 'a cat .' --alignment x", "--alignment needs a corpus"),
           std::pair("view demo 'a cat .' --corpus x --alignment x", "--alignment needs the translations"),
           std::pair("view demo 'a cat .' --with demo --checkpoints demo", "give one of them"),
           std::pair("view demo 'a cat .' --checkpoints /nowhere", "/nowhere has no checkpoints"),
           std::pair("view demo 'a cat .' --max-size 0", "--max-size"),
           std::pair("view demo 'a cat .' --circuit /nowhere/c.json", "/nowhere/c.json"),
           std::pair("view 'a cat .' --checkpoints demo --circuit c.json", "--checkpoints shows several"),
           std::pair("view demo 'a cat .' --live --with demo", "--live puts one model into the page"),
           std::pair("view demo 'a cat .' --live --mute 'encoder.*'", "leave out what changes them here"),
           std::pair("view demo 'a cat .' --live --precision fast", "leave out --precision"),
           std::pair("view demo 'a cat .' --live --no-importance --max-size 1", "give a smaller model"),
           std::pair("view demo 'a cat .' --live --no-importance --max-size 3",
                     "more than 3; give --live-weights int8 ("),
           std::pair("view demo 'a cat .' --live --no-importance --max-size 4",
                     "MB) or --live-weights int8 ("),
           std::pair("view demo 'a cat .' --live-weights int8", "give --live, too"),
           std::pair("view demo 'a cat .' --live --live-weights int4", "file|float16|int8"),
           std::pair("view 'a cat .' --checkpoints demo --aligners a.json", "--checkpoints shows several"),
       }) {
    const ToolResult result = run_tool(command + page);
    EXPECT_NE(result.status, 0) << command;
    EXPECT_THAT(result.err, HasSubstr(says)) << command;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / "heads.html")) << command;
  }
  EXPECT_NE(run_tool("view demo 'a cat .' -o /nowhere/heads.html").status, 0);
}

}  // namespace
}  // namespace mh
