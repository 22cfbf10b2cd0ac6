// CoNLL-U, Pharaoh alignments, parallel text and batches: what is read, what is refused, what is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <sstream>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/random.h"
#include "multihead/data/alignment.h"
#include "multihead/data/conllu.h"
#include "multihead/data/parallel_text.h"
#include "multihead/data/parallel_tokens.h"
#include "multihead/io/lines.h"

namespace mh {
namespace {

using testing::HasSubstr;

std::filesystem::path fresh_file(const std::string& name, const std::string& bytes) {
  const auto folder = std::filesystem::temp_directory_path() / ("mh_text_files_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << bytes;
  return folder / name;
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

std::vector<ConlluSentence> parse(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return parse_conllu(lines, "f");
}

/// "1 dog dog NOUN _ _ 0 root _ _" with tabs.
std::string row(std::string columns) {
  std::replace(columns.begin(), columns.end(), ' ', '\t');
  return columns + "\n";
}

const std::string kSmall = "# sent_id = 7\n" + row("1-2 im _ _ _ _ _ _ _ _") +
                           row("1 in in ADP _ _ 3 case _ _") + row("2 dem der DET _ Case=Dat 3 det _ _") +
                           row("3 Haus Haus NOUN NN _ 0 root 0:root X=1") +
                           row("3.1 ist sein AUX _ _ _ _ 3:cop _") + "\n";

TEST(Conllu, ReadsTreesAndWritesThemBackToTheByte) {
  const auto sentences = parse(kSmall + kSmall);
  ASSERT_EQ(sentences.size(), 2u);
  const auto tree = sentences[0].tree();
  ASSERT_EQ(tree.size(), 3u);
  EXPECT_EQ(tree[0].head, 2);
  EXPECT_EQ(tree[2].head, -1);
  EXPECT_EQ(tree[1].relation, "det");
  EXPECT_EQ(tree[2].lemma, "Haus");
  EXPECT_EQ(text_of(tree), "in dem Haus");
  EXPECT_EQ(format_conllu(sentences), kSmall + kSmall);
}

TEST(Conllu, NeedsNoLastEmptyLine) {
  EXPECT_EQ(format_conllu(parse(kSmall.substr(0, kSmall.size() - 1))), kSmall);
  EXPECT_TRUE(parse("").empty());
}

// As the Python packages conllu and pyconll do.
TEST(Conllu, EmptyLinesAndLinesOfSpacesEndASentenceOnce) {
  const std::string without_end = kSmall.substr(0, kSmall.size() - 1);
  for (const std::string& text :
       {kSmall + "\n" + kSmall, "\n" + kSmall + kSmall, "\n\n" + kSmall + kSmall + "\n\n",
        without_end + " \n" + kSmall, without_end + "\t\n  \n\n" + kSmall + " \n", " \n" + kSmall + kSmall})
    EXPECT_EQ(format_conllu(parse(text)), kSmall + kSmall) << text;
  EXPECT_TRUE(parse("\n \n\n").empty());
}

TEST(Conllu, RefusesWhatIsNone) {
  const std::string good = row("1 a a X _ _ 0 root _ _");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {row("1 a a X _ _ 0 root _"), "f:1: expected 10 columns with tabs between, got 9"},
      {row("1 a a X _ _ 0 root _ _ _"), "got 11"},
      {"1 a a X _ _ 0 root _ _\n", "got 1"},
      {row("1 a  X _ _ 0 root _ _"), "column 3 is empty"},
      {row("2 a a X _ _ 0 root _ _"), "expected word number 1, got '2'"},
      {good + row("1 a a X _ _ 1 x _ _"), "f:2: expected word number 2"},
      {row("x a a X _ _ 0 root _ _"), "got 'x'"},
      {row("-1 a a X _ _ 0 root _ _"), "got '-1'"},
      {row("1 a a X _ _ _ root _ _"), "expected a number as head, got '_'"},
      {row("1 a a X _ _ -1 root _ _"), "got '-1'"},
      {row("1 a a X _ _ 99999999999999999999 root _ _"), "expected a number as head"},
      {row("1 a a X _ _ 0.5 root _ _"), "expected a number as head"},
      {row("1 a a X _ _ 2147483647 root _ _"), "2147483647 is the head of word 1"},
      {row("1 a a X _ _ 2 root _ _"), "has 1 words, but 2 is the head of word 1"},
      {row("1 a a X _ _ 1 root _ _"), "no tree"},
      {row("1 a a X _ _ 2 x _ _") + row("2 a a X _ _ 1 x _ _"), "no tree"},
      {good + row("2 a a X _ _ 0 root _ _"), "no tree"},
      {good + row("2 a a X _ _ 3 x _ _") + row("3 a a X _ _ 2 x _ _"), "no tree"},
      {row("2-3 a _ _ _ _ _ _ _ _") + good, "got '2-3'"},
      {row("1-1 a _ _ _ _ _ _ _ _") + good, "got '1-1'"},
      {row("5.1 a _ _ _ _ _ _ _ _") + good, "got '5.1'"},
      {row("0.1 a _ _ _ _ _ _ _ _") + "\n", "f:2: empty nodes without a sentence"},
      {"# only a comment\n\n", "comments without a sentence"},
      {good + "# late\n", "a comment inside a sentence"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = message_of([&, &text = text] { parse(text); });
    EXPECT_THAT(message, HasSubstr(expected)) << text;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(Conllu, SurvivesEveryTruncationAndManyFlippedBits) {
  for (size_t size = 0; size < kSmall.size(); ++size) {
    message_of([&] { parse(kSmall.substr(0, size)); });
  }
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text = kSmall;
    text[random.below(static_cast<uint32_t>(text.size()))] ^= static_cast<char>(1u << random.below(8));
    message_of([&] {
      for (const auto& sentence : parse(text)) EXPECT_TRUE(is_tree(sentence.tree()));
    });
  }
}

TEST(Conllu, ReadsTheEnglishWebTreebankAndWritesItBack) {
  const char* data = std::getenv("MULTIHEAD_DATA");
  if (data == nullptr) GTEST_SKIP() << "MULTIHEAD_DATA is not set: no treebank to read";
  const auto path = std::filesystem::path(data) / "ud-ewt" / "en_ewt-ud-dev.conllu.gz";
  ConlluFileReader file(path);
  auto sentences = file.next(2000);
  EXPECT_EQ(sentences.size(), 2000u);
  for (auto& last : file.next(2000)) sentences.push_back(std::move(last));
  EXPECT_EQ(sentences.size(), 2001u);
  const size_t words = std::accumulate(sentences.begin(), sentences.end(), size_t{0},
                                       [](size_t sum, const auto& s) { return sum + s.words.size(); });
  EXPECT_GT(words, 25000u);
  std::string bytes;
  for (const std::string& line : read_lines(path)) bytes.append(line) += '\n';
  EXPECT_TRUE(format_conllu(sentences) == bytes);
}

TEST(Pharaoh, ReadsAndWrites) {
  const Alignment pairs = {{0, 0}, {1, 12}, {1, 3}};
  EXPECT_EQ(parse_pharaoh("0-0 1-12 1-3"), pairs);
  EXPECT_EQ(parse_pharaoh("  0-0\t1-12  1-3 "), pairs);
  EXPECT_EQ(format_pharaoh(pairs), "0-0 1-12 1-3");
  EXPECT_TRUE(parse_pharaoh("").empty());
  EXPECT_EQ(format_pharaoh({}), "");
}

TEST(Pharaoh, RefusesWhatIsNone) {
  for (const char* bad : {"0", "-", "0-", "-0", "0-0-0", "a-b", "0p0", "0--1", "1-+2", "0-0,1-1",
                          "2147483648-0", "0-99999999999999999999", "0.5-1", "0-0 x"}) {
    const std::string message = message_of([&] { parse_pharaoh(bad, "f", 3); });
    EXPECT_THAT(message, HasSubstr("f:3: expected word pairs like 0-0 1-2")) << bad;
  }
}

TEST(Pharaoh, ChecksThatPairsLieInTheirSentences) {
  EXPECT_NO_THROW(check_alignment({{2, 4}}, 3, 5, "f", 1));
  EXPECT_THAT(message_of([] {
                check_alignment({{0, 0}, {2, 4}}, 2, 5, "f", 9);
              }),
              HasSubstr("f:9: 2-4 points outside a sentence of 2 words and its translation of 5"));
  EXPECT_THROW(check_alignment({{2, 4}}, 3, 4, "f", 1), FormatError);
}

TEST(ParallelText, ReadsBothSides) {
  const auto text =
      read_parallel_text(fresh_file("a.en", "one\n\ntwo words\n"), fresh_file("a.de", "eins\n\nzwei Wörter"));
  EXPECT_THAT(text.source, testing::ElementsAre("one", "", "two words"));
  EXPECT_THAT(text.target, testing::ElementsAre("eins", "", "zwei Wörter"));
}

TEST(ParallelText, RefusesWhatDoesNotFit) {
  const auto three = fresh_file("b.en", "a\nb\nc\n"), two = fresh_file("b.de", "a\nb\n"),
             none = fresh_file("no", "");
  const std::string message = message_of([&] { read_parallel_text(three, two); });
  EXPECT_THAT(message, HasSubstr("b.en has 3 lines"));
  EXPECT_THAT(message, HasSubstr("b.de has 2;"));
  EXPECT_THAT(message_of([&] { read_parallel_text(three, none); }), HasSubstr("no: is empty"));
  EXPECT_THAT(message_of([&] { read_parallel_text(none, none); }), HasSubstr("no: is empty"));
  EXPECT_THROW(read_parallel_text(three, "/no/such/file"), FileError);
  EXPECT_THAT(message_of([&] { read_parallel_text(three, fresh_file("b.bin", "a\n\xff\n\n")); }),
              HasSubstr("2"));
}

ParallelTokens random_tokens(int sentences) {
  Random random(11);
  ParallelTokens tokens;
  for (int i = 0; i < sentences; ++i) {
    tokens.source.emplace_back(1 + random.below(19), 5);
    tokens.target.emplace_back(1 + random.below(23), 6);
  }
  return tokens;
}

TEST(PlanBatchesOfPairs, CountsTheTargetOrTheLongerSideWithTheStart) {
  const ParallelTokens tokens{.source = {{3, 0}, {3, 4, 5, 6, 0}}, .target = {{7, 8, 0}, {7, 0}}};
  const std::vector<ExampleSize> sizes = sizes_of(tokens);
  EXPECT_EQ(sizes[0].tokens, 3);
  EXPECT_EQ(sizes[0].width, 4);
  EXPECT_EQ(sizes[1].tokens, 2);
  EXPECT_EQ(sizes[1].width, 5);
  const auto batches_of = [&](int64_t max_tokens, BatchOptions::Count count) {
    return plan_batches(tokens, {.max_tokens = max_tokens, .count = count}).size();
  };
  EXPECT_EQ(batches_of(5, BatchOptions::Count::kTokens), 1u);
  EXPECT_EQ(batches_of(4, BatchOptions::Count::kTokens), 2u);
  EXPECT_EQ(batches_of(10, BatchOptions::Count::kPadded), 1u);
  EXPECT_EQ(batches_of(9, BatchOptions::Count::kPadded), 2u);
}

TEST(PlanBatchesOfPairs, PutsLikeLengthsTogether) {
  const ParallelTokens tokens = random_tokens(2003);
  for (const auto& batch : plan_batches(tokens, {.max_tokens = 97}, 0)) {
    size_t least = 99, most = 0;
    for (const int64_t i : batch) {
      least = std::min(least, tokens.target[static_cast<size_t>(i)].size());
      most = std::max(most, tokens.target[static_cast<size_t>(i)].size());
    }
    EXPECT_LE(most - least, 2u);  // 2003 sentences of 23 lengths: some 87 of each, a batch has 97 tokens
  }
}

TEST(PlanBatchesOfPairs, GivesALongSentenceABatchOfItsOwnAndCountsIt) {
  ParallelTokens tokens = random_tokens(7);
  tokens.target[4].assign(101, 6);
  tokens.source[2].assign(103, 6);
  int alone = 0;
  for (const auto& batch : plan_batches(tokens, {.max_tokens = 50}, 0)) {
    alone += batch == std::vector<int64_t>{4} ? 1 : 0;
  }
  EXPECT_EQ(alone, 1);
  EXPECT_THAT(longer_than(tokens, 100), testing::ElementsAre(2, 4));
  EXPECT_THAT(longer_than(tokens, 101), testing::ElementsAre(2));
  EXPECT_TRUE(plan_batches(ParallelTokens{}, {}, 0).empty());
  EXPECT_THROW(plan_batches(tokens, {.max_tokens = 0}, 0), UsageError);
}

}  // namespace
}  // namespace mh
