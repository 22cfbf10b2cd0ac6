// multihead completion: the scripts know every verb and flag, and complete in a real shell.
#include <regex>
#include <set>

#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::string script_for(const std::string& shell) {
  const ToolResult result = run_tool("completion " + shell);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

// What bash offers for the last of these words.
std::vector<std::string> completed(const std::string& words, const std::string& folder = ".") {
  const ToolResult result = run_shell("cd '" + folder +
                                      "' && bash --norc --noprofile -c 'source <(\"$1\" completion bash)\n"
                                      "COMP_WORDS=(\"$1\" " +
                                      words +
                                      ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_multihead\n"
                                      "printf \"%s\\n\" \"${COMPREPLY[@]}\"' bash \"$MULTIHEAD\"");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "") << words;
  return lines_of(result.out);
}

TEST(Completion, CompletesInBash) {
  EXPECT_THAT(completed("tr"), AllOf(Contains("translate"), Contains("train"), Each(StartsWith("tr"))));
  EXPECT_THAT(completed("\"\""), AllOf(Contains("info"), Contains("completion"), Not(Contains("pages"))));
  EXPECT_THAT(completed("translate --beam"), testing::ElementsAre("--beam-size"));
  EXPECT_THAT(completed("--threads 2 translate --gr"), testing::ElementsAre("--greedy"));
  EXPECT_THAT(completed("translate --qui"), testing::ElementsAre("--quiet"));
  EXPECT_THAT(completed("translate --length-penalty-form \"\""), testing::ElementsAre("divide", "gnmt"));
  EXPECT_THAT(completed("translate --length-penalty-form = g"), testing::ElementsAre("gnmt"));
  EXPECT_THAT(completed("translate --length-penalty-form ="), testing::ElementsAre("divide", "gnmt"));
  EXPECT_THAT(completed("translate --beam-size \"\""), testing::ElementsAre(""));
  EXPECT_THAT(completed("generate --chat --gree"), testing::ElementsAre("--greedy"));
  EXPECT_THAT(completed("data \"\""), testing::ElementsAre("grammar"));
  EXPECT_THAT(completed("data grammar --dep"), testing::ElementsAre("--depth"));
  EXPECT_THAT(completed("train --preset tin"), Contains("tiny"));
  EXPECT_THAT(completed("ledger --geometry mul"), testing::ElementsAre("multi-query"));
  EXPECT_THAT(completed("study one-p"), testing::ElementsAre("one-product"));
  EXPECT_THAT(completed("completion \"\""), testing::ElementsAre("bash", "zsh", "fish"));
}

TEST(Completion, CompletesFilesAndFolders) {
  const ScratchFolder scratch;
  scratch.write("model.txt", "");
  std::filesystem::create_directory(scratch.path() / "models");
  const std::string folder = scratch.path().string();
  EXPECT_THAT(completed("info mod", folder), testing::ElementsAre("models"));
  EXPECT_THAT(completed("info --model mod", folder), testing::ElementsAre("models"));
  EXPECT_THAT(completed("tokenize -i mod", folder), testing::UnorderedElementsAre("models", "model.txt"));
  EXPECT_THAT(completed("tokenize --train a mod", folder), testing::ElementsAre("models"));
}

// Against what --help-all says.
TEST(Completion, KnowsEveryVerbAndFlag) {
  const std::regex a_verb("^  ([a-z]+)  +[A-Z]"), a_flag("^ +(?:-[a-z], )?(--[a-z0-9-]+)");
  std::set<std::string> verbs;
  size_t flags = 0;
  std::smatch found;
  for (const std::string& line : lines_of(run_tool("--help-all").out)) {
    if (std::regex_search(line, found, a_verb)) verbs.insert(found[1]);
  }
  EXPECT_GE(verbs.size(), 14u);
  for (const std::string& name : verbs) {
    std::string verb = name;
    for (const char* above : {"data ", "heads "}) {
      if (run_tool("complete " + (above + name)).out.starts_with(name + "\t")) verb = above + name;
    }
    EXPECT_THAT(run_tool("complete " + verb).out, StartsWith(name + "\t"));
    const std::string offered = "\n" + run_tool("complete " + verb + " -").out;
    for (const std::string& line : lines_of(run_tool(verb + " --help-all").out)) {
      if (!std::regex_search(line, found, a_flag)) continue;
      ++flags;
      EXPECT_THAT(offered, HasSubstr("\n" + found[1].str() + "\t")) << verb;
    }
  }
  EXPECT_GE(flags, 100u);
}

TEST(Completion, OffersValuesBehindTheSign) {
  EXPECT_EQ(run_tool("complete translate --length-penalty-form=g").out, "--length-penalty-form=gnmt\n");
  EXPECT_EQ(run_tool("complete translate --input=").out, ":files\n");
  EXPECT_EQ(run_tool("complete translate --no-such-flag=a").out, "");
  EXPECT_EQ(run_tool("complete").out, "");
}

TEST(Completion, IsReadByEveryShellThatIsHere) {
  EXPECT_EQ(run_shell("bash -n", script_for("bash")).err, "");
  for (const std::string shell : {"zsh", "fish"}) {
    if (run_shell("command -v " + shell).status != 0) continue;
    const ToolResult result = run_shell(shell + " -n /dev/stdin", script_for(shell));
    EXPECT_EQ(result.status, 0) << shell << ": " << result.err;
    EXPECT_EQ(result.err, "") << shell;
  }
  if (run_shell("command -v fish").status == 0) {
    const ToolResult result = run_shell(
        "export HOME='" + ScratchFolder().path().string() +
        "' PATH=\"$(dirname \"$MULTIHEAD\"):$PATH\"; fish --no-config -c 'multihead completion fish | "
        "source; complete -C \"multihead translate --beam\"'");
    EXPECT_THAT(result.out, StartsWith("--beam-size\t")) << result.err;
  }
}

TEST(Completion, RefusesAnotherShell) {
  expect_error(run_tool("completion tcsh"), 2, "shell: expected bash|zsh|fish, got tcsh");
  expect_error(run_tool("completion"), 2, "shell is required");
}

}  // namespace
}  // namespace mh
