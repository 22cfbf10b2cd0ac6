#include "multihead/heads/corpus/corpus_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/data/conllu.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// "word 1", "word 2", ...: more lines than a block has.
constexpr size_t kLines = 2 * kCorpusLines + 13;

std::string numbered(const char* word, size_t count) {
  std::string text;
  for (size_t i = 1; i <= count; ++i) text += std::string(word) + " " + std::to_string(i) + "\n";
  return text;
}

std::string numbered_trees(size_t count) {
  std::string text;
  for (size_t i = 1; i <= count; ++i) {
    const std::vector<Word> tree{
        {.form = "word", .lemma = "_", .upos = "_", .head = -1, .relation = "root"},
        {.form = std::to_string(i), .lemma = "_", .upos = "_", .head = 0, .relation = "nummod"}};
    text += format_conllu(tree, std::to_string(i));
  }
  return text;
}

HeadsText all_of(HeadsCorpus& corpus, size_t* blocks = nullptr) {
  HeadsText all{.sources = {}};
  for (HeadsText text = corpus.next(); !text.sources.empty(); text = corpus.next()) {
    if (blocks != nullptr) ++*blocks;
    all.sources.insert(all.sources.end(), text.sources.begin(), text.sources.end());
    all.targets.insert(all.targets.end(), text.targets.begin(), text.targets.end());
    all.source_trees.insert(all.source_trees.end(), text.source_trees.begin(), text.source_trees.end());
    all.alignments.insert(all.alignments.end(), text.alignments.begin(), text.alignments.end());
  }
  return all;
}

class CorpusFilesTest : public testing::Test {
 protected:
  /// Writes a file and returns its path.
  std::string written(const std::string& name, const std::string& text) const {
    const std::string path = scratch / name;
    write_file_atomically(path, text);
    return path;
  }

  test::ScratchFolder scratch;
  std::string source = written("source", numbered("word", kLines));
};

TEST_F(CorpusFilesTest, GivesEveryLineOnceAndAgain) {
  std::string pairs;
  for (size_t i = 1; i <= kLines; ++i) pairs += "0-0 1-1\n";
  FilesCorpus corpus({.input = source,
                      .target = written("target", numbered("wort", kLines)),
                      .conllu = written("trees", numbered_trees(kLines)),
                      .alignment = written("alignment", pairs)});
  for (int reading = 0; reading < 2; ++reading) {
    size_t blocks = 0;
    const HeadsText all = all_of(corpus, &blocks);
    EXPECT_EQ(blocks, 3u);
    ASSERT_EQ(all.sources.size(), kLines);
    ASSERT_EQ(all.source_trees.size(), kLines);
    EXPECT_EQ(all.alignments.size(), kLines);
    for (const size_t i : {size_t{0}, kCorpusLines - 1, kCorpusLines, kLines - 1}) {
      EXPECT_EQ(all.sources[i], "word " + std::to_string(i + 1));
      EXPECT_EQ(all.targets[i], "wort " + std::to_string(i + 1));
      EXPECT_EQ(all.source_trees[i][1].form, std::to_string(i + 1));
    }
    corpus.restart();
  }
  EXPECT_EQ(corpus.name(), source);
}

TEST_F(CorpusFilesTest, TheWordsOfTreesAreTheText) {
  FilesCorpus corpus({.conllu = written("trees", numbered_trees(5))});
  EXPECT_THAT(all_of(corpus).sources, testing::ElementsAre("word 1", "word 2", "word 3", "word 4", "word 5"));
}

TEST_F(CorpusFilesTest, ReadsLinesThatAreHere) {
  FilesCorpus corpus({.lines = std::vector<std::string>{"a", "b"}, .name = "standard input"});
  EXPECT_THAT(all_of(corpus).sources, testing::ElementsAre("a", "b"));
  corpus.restart();
  EXPECT_EQ(all_of(corpus).sources.size(), 2u);
  EXPECT_EQ(corpus.name(), "standard input");
  EXPECT_THROW(FilesCorpus(CorpusFiles{}), UsageError);
}

TEST_F(CorpusFilesTest, SaysHowManyLinesThereAreWhereTheyDiffer) {
  for (const size_t count : {kLines - 1, kLines + 1, size_t{7}, kCorpusLines, 2 * kCorpusLines, 3 * kLines}) {
    FilesCorpus corpus({.input = source, .target = written("target", numbered("wort", count))});
    const std::string counts = " has " + std::to_string(count) + " lines, but " + source + " has " +
                               std::to_string(kLines) + " lines; there must be one for each";
    EXPECT_THAT([&] { all_of(corpus); }, ThrowsMessage<FormatError>(HasSubstr(counts))) << count;
  }
  FilesCorpus trees({.input = source, .conllu = written("trees", numbered_trees(3))});
  EXPECT_THAT([&] { all_of(trees); }, ThrowsMessage<FormatError>(HasSubstr("trees has 3 sentences, but ")));
}

TEST_F(CorpusFilesTest, NamesTheLineOfAMistake) {
  std::string links;
  for (size_t i = 1; i < kLines; ++i) links += "0-0\n";
  FilesCorpus corpus({.input = source,
                      .target = written("target", numbered("wort", kLines)),
                      .alignment = written("alignment", links + "0-x\n")});
  EXPECT_THAT([&] { all_of(corpus); },
              ThrowsMessage<FormatError>(HasSubstr("alignment:" + std::to_string(kLines) + ": ")));
  // A circle in the last tree.
  const std::string circle = "1\ta\t_\t_\t_\t_\t2\tx\t_\t_\n2\tb\t_\t_\t_\t_\t1\tx\t_\t_\n\n";
  FilesCorpus trees({.conllu = written("trees", numbered_trees(kLines) + circle)});
  EXPECT_THAT([&] { all_of(trees); }, ThrowsMessage<FormatError>(HasSubstr("is no tree")));
}

}  // namespace
}  // namespace mh
