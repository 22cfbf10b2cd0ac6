// What is left out of a corpus though the user gave it is said: how many lines, and which first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/measures/heads_similar.h"
#include "multihead/heads/measures/heads_stats.h"
#include "multihead/heads/measures/heads_where.h"
#include "tests/heads/importance/scored_families.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> remarks_on(const ModelFolder& folder, HeadsText text) {
  std::vector<std::string> remarks;
  TextCorpus corpus(std::move(text));
  observe_heads(folder, corpus, {}, {.remark = [&](const std::string& line) { remarks.push_back(line); }});
  return remarks;
}

TEST(LeftOutLines, APairWithoutSourceIsNamed) {
  const ModelFolder folder = small_translator(lines_of_importance(true).sources);
  EXPECT_THAT(
      remarks_on(folder, {.sources = {"the end", "", " \t", "a cat", ""},
                          .targets = {"see", "", "a park", "two", "runs"}}),
      ElementsAre(
          "2 lines left out, with a target or a second text, but no source text; the first is line 3"));
  EXPECT_THAT(remarks_on(folder, {.sources = {"the end", "", "a cat"}, .targets = {"see", "two", "two"}}),
              ElementsAre("line 2 left out, with a target or a second text, but no source text"));
  EXPECT_THAT(remarks_on(folder, {.sources = {"the end", "", "a cat"}, .targets = {"see", "", ""}}),
              IsEmpty());
  EXPECT_THAT(remarks_on(folder, {.sources = {"the end", "", "a cat"}}), IsEmpty());
}

TEST(LeftOutLines, ASecondTextWithoutFirstIsNamed) {
  const SentenceModel model = load_sentence_model(golden_of_importance("sentences/modes"));
  EXPECT_THAT(remarks_on(model.folder,
                         {.sources = {"two dogs run", "a cat", ""}, .pairs = {"a cat", "", "two dogs"}}),
              ElementsAre("line 3 left out, with a target or a second text, but no source text"));
}

TEST(LeftOutLines, EveryMeasureSaysIt) {
  const ModelFolder folder = small_translator(lines_of_importance(true).sources);
  const HeadsText text{.sources = {"the end", "", "two dogs run in the park"},
                       .targets = {"see", "two", "a park"}};
  std::vector<std::string> remarks;
  const ObserveHeadsOptions read{.remark = [&](const std::string& line) { remarks.push_back(line); }};
  TextCorpus stats(text), similar(text), where(text);
  heads_stats(folder, stats, read);
  heads_similar(folder, similar, {.observe = read});
  heads_where(folder, where, {.read = read});
  EXPECT_EQ(remarks.size(), 3u);
  for (const std::string& remark : remarks) EXPECT_THAT(remark, testing::StartsWith("line 2 left out, "));
}

TEST(LeftOutLines, ATextOfWhichNothingIsPredictedIsNamed) {
  const ScoredModel model = load_scored_model(golden_of_importance("generate/gpt2"));
  const std::string single = model.folder().source_tokens().decode(std::vector<int32_t>{7});
  ASSERT_EQ(model.folder().source_tokens().encode_ids(single).size(), 1u);
  std::vector<std::string> remarks;
  TextCorpus corpus(HeadsText{.sources = {"the cat runs", single, "a park", single, single}});
  const ScoredTexts texts =
      read_scored_texts(model.folder(), corpus,
                        {.read = {.remark = [&](const std::string& line) { remarks.push_back(line); }}});
  EXPECT_EQ(texts.texts.size(), 2u);
  EXPECT_EQ(texts.texts[1].number, 2);
  EXPECT_THAT(remarks,
              ElementsAre("3 lines left out, of one token, which nothing predicts; the first is line 2"));
}

}  // namespace
}  // namespace mh
