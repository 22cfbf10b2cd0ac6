// multihead tokenize: pieces, ids, offsets and back; learning tokenizers.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <regex>

#include "multihead/io/lines.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class TokenizeVerb : public SmallFolder {
 protected:
  ToolResult run(const std::string& flags, std::string_view input = "") const {
    return run_tool("tokenize --model '" + folder + "' " + flags, input);
  }
  // Lines of several kinds, the empty one and one of white space among them.
  std::string text = kText[0] + "\n\n" + kText[3] + "\n \t\n" + kText[5] + "\n";
};

TEST_F(TokenizeVerb, PiecesIdsAndOffsetsAreTheTokenizersLineByLine) {
  const auto pieces = lines_of(run("", text).out), ids = lines_of(run("--ids", text).out),
             special = lines_of(run("--ids --special-tokens", text).out),
             offsets = lines_of(run("--offsets", text).out);
  const auto lines = lines_of(text);
  ASSERT_EQ(pieces.size(), lines.size());
  ASSERT_EQ(ids.size(), lines.size());
  ASSERT_EQ(offsets.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const Encoding encoding = tokenizer.encode(lines[i], false);
    EXPECT_EQ(pieces[i], fmt::format("{}", fmt::join(encoding.tokens, " ")));
    EXPECT_EQ(ids[i], fmt::format("{}", fmt::join(encoding.ids, " ")));
    EXPECT_EQ(special[i], fmt::format("{}", fmt::join(tokenizer.encode_ids(lines[i]), " ")));
    std::vector<std::string> pairs;
    for (const auto& [begin, end] : encoding.offsets) pairs.push_back(fmt::format("{}:{}", begin, end));
    EXPECT_EQ(offsets[i], fmt::format("{}", fmt::join(pairs, " ")));
  }
  EXPECT_EQ(pieces[1], "");
  EXPECT_EQ(pieces[3], "");
}

TEST_F(TokenizeVerb, PiecesAndIdsBecomeTheTextAgain) {
  const std::string back = kText[0] + "\n\n" + kText[3] + "\n\n" + kText[5] + "\n";
  EXPECT_EQ(run("--detokenize", run("", text).out).out, back);
  EXPECT_EQ(run("--detokenize --ids", run("--ids", text).out).out, back);
  EXPECT_EQ(run("--detokenize --ids", run("--ids --special-tokens", text).out).out, back);
}

TEST_F(TokenizeVerb, ReadablePiecesAreText) {
  const std::string bytes = "tokenize --tokenizer " + goldens_folder() + "/text/hf_byte_level.json ";
  const std::string line = "the to \u6F22\n", raw = "the \u0120to \u0120 \u00E6 \u00BC \u00A2\n";
  EXPECT_EQ(run_tool(bytes, line).out, raw);  // what --detokenize reads
  EXPECT_EQ(run_tool(bytes + "--detokenize", raw).out, line);
  EXPECT_EQ(run_tool(bytes + "--readable", line).out, "the \u2581to \u2581 <0xE6> <0xBC> <0xA2>\n");
  // Of other tokenizers they are the pieces, unknown words among them.
  const std::string with_unknown = text + "\u6F22 the\n";
  EXPECT_EQ(run("--readable --special-tokens", with_unknown).out, run("--special-tokens", with_unknown).out);
  for (const char* other : {"--ids", "--offsets", "--detokenize"})
    expect_error(run("--readable " + std::string(other)), 2, "cannot be given together");
}

// The page has all that the errors of the reader name.
TEST_F(TokenizeVerb, ThePageNamesAllThatIsRead) {
  std::ifstream file(source_folder() + "/docs/verbs/tokenize.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string what = page.substr(page.find("## What it reads"));
  const std::string regex = R"({"type":"Split","pattern":{"Regex":"x+"},"behavior":"Isolated"})";
  const std::pair<std::string, std::string> unknown[] = {{"normalizer", R"({"type":"?"})"},
                                                         {"pre_tokenizer", R"({"type":"?"})"},
                                                         {"post_processor", R"({"type":"?"})"},
                                                         {"decoder", R"({"type":"?"})"},
                                                         {"pre_tokenizer", regex},
                                                         {"model", R"({"type":"?","vocab":{"a":0}})"}};
  size_t names = 0;
  for (const auto& [member, value] : unknown) {
    const std::string rest = member == "model" ? "" : R"(,"model":{"type":"WordLevel","vocab":{"a":0}})";
    const std::string json = scratch.write("unknown.json", "{\"" + member + "\":" + value + rest + "}");
    const std::string error = run_tool("tokenize --tokenizer '" + json + "'").err;
    ASSERT_THAT(error, HasSubstr("expected "));
    std::string known = error.substr(error.rfind("expected ") + 9);
    known = known.substr(0, known.find(", got "));
    const std::regex separator(", or |, | or |one of |a String|two spaces and more|the words of |\n");
    for (std::sregex_token_iterator name(known.begin(), known.end(), separator, -1), end; name != end;
         ++name) {
      if (name->str().empty()) continue;
      EXPECT_THAT(what, HasSubstr(name->str())) << error;
      ++names;
    }
  }
  EXPECT_EQ(names, 13u + 9 + 5 + 9 + 9 + 4);
}

TEST_F(TokenizeVerb, FilesAndThreadsDoNotChangeTheResult) {
  std::string many;
  for (int i = 0; i < 700; ++i) many += kText[static_cast<size_t>(i * i % 6)] + "\n";  // several tasks
  const std::string expected = run("--ids", many).out;
  EXPECT_EQ(lines_of(expected).size(), 700u);
  const std::string file = scratch.write("many", many), output = scratch / "out";
  const ToolResult found = run_tool("--threads 3 tokenize --tokenizer '" + folder +
                                    "/tokenizer.json' --ids -i '" + file + "' -o '" + output + "'");
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, IsEmpty());
  EXPECT_EQ(scratch.read("out"), expected);
}

TEST_F(TokenizeVerb, LearnsWhatTheLibraryLearns) {
  const std::string one = scratch.write("one", "Ein Hund\nzwei Hunde\n"), two = scratch / "two.gz";
  const gzFile packed = gzopen(two.c_str(), "wb");
  gzputs(packed, "ein H\xc3\xbchnerhund und ein H\xc3\xbchnerhof\n");
  gzclose(packed);
  std::vector<std::string> lines = read_lines(one);
  lines.push_back(read_lines(two).at(0));
  const std::string made = scratch / "made.json", files = "--train '" + one + "' '" + two + "'";
  const ToolResult learned = run_tool("tokenize " + files + " --output-tokenizer '" + made + "'");
  EXPECT_EQ(learned.status, 0) << learned.err;
  EXPECT_THAT(learned.out, IsEmpty());
  EXPECT_THAT(learned.err, HasSubstr("tokens learned from 3 lines"));
  EXPECT_EQ(scratch.read("made.json"), train_bpe(lines).to_json());

  const ToolResult words = run_tool("--quiet tokenize " + files + " --output-tokenizer '" + made +
                                    "' --word-level --lowercase --normalization nfc --vocabulary-size 7");
  EXPECT_EQ(words.status, 0);
  EXPECT_THAT(words.err, IsEmpty());
  EXPECT_EQ(
      scratch.read("made.json"),
      train_word_level(lines, {.vocabulary_size = 7, .lowercase = true, .normalization = Normalization::kNfc})
          .to_json());
}

TEST_F(TokenizeVerb, BadInputIsOneLineAndAStatus) {
  const std::string one = scratch.write("one", "a dog\n"), empty = scratch.write("empty", ""),
                    blank = scratch.write("blank", "\n \n"), made = scratch / "made.json";
  const auto learn = [&](const std::string& flags) {
    return run_tool("tokenize --output-tokenizer '" + made + "' --train " + flags);
  };
  expect_error(run_tool("tokenize"), 2, "expected one of --tokenizer FILE, --model MODEL and --train FILE");
  expect_error(run("--tokenizer '" + folder + "/tokenizer.json'"), 2, "expected one of");
  expect_error(run_tool("tokenize --tokenizer '" + folder + "'"), 1, "Is a directory");
  expect_error(run_tool("tokenize --tokenizer '" + one + "'", "x"), 1, "one: not JSON");
  expect_error(run_tool("tokenize --model '" + (scratch / "none") + "'"), 1, "none has no tokenizer.json");
  expect_error(run("", "fine\n\xc3(\n"), 1, "standard input: line 2: byte 1 (0xc3) is not UTF-8");
  expect_error(run("--detokenize", "\n\xe2\x96\x81the\nnonsense\n"), 1, "standard input line 3: 'nonsense'");
  expect_error(run("--detokenize --ids", "5\n5 -6\n"), 1, "standard input line 2: expected ids from 0 to");
  expect_error(run("--detokenize --ids -i '" + one + "'"), 1, "one line 1: expected ids");
  // Flags that would have no effect are a mistake.
  expect_error(run("--lowercase"), 2, "--lowercase requires --train");
  expect_error(run("--output-tokenizer x"), 2, "requires --train");
  expect_error(run("--offsets --ids"), 2, "cannot be given together");
  expect_error(run("--offsets --detokenize"), 2, "cannot be given together");
  expect_error(learn("'" + one + "' --ids"), 2, "cannot be given together");
  expect_error(learn("'" + one + "' -o x"), 2, "cannot be given together");
  expect_error(learn("'" + one + "' --vocabulary-size 3"), 2,
               "--vocabulary-size: expected an integer from 4 to 16777216, got 3");
  expect_error(learn("'" + one + "' --normalization 1"), 2, "--normalization: expected nfkc|nfc|none, got 1");
  expect_error(learn("'" + one + "' '" + empty + "'"), 1, empty + " is empty");
  expect_error(learn("'" + blank + "'"), 1, blank + ": no words in it");
  EXPECT_FALSE(std::filesystem::exists(made));
  expect_error(
      run_tool("tokenize --train '" + one + "' --output-tokenizer '" + (scratch / "no/t.json") + "'"), 1,
      "no/t.json: No such file or directory; make the folder first");
}

}  // namespace
}  // namespace mh
