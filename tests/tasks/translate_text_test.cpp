#include "multihead/tasks/translate_text.h"
#include "multihead/models/encoder_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "multihead/models/translator_shape.h"
#include "multihead/tasks/model_text.h"
#include "multihead/text/train_tokenizer.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::vector<std::string> kLines{"the small dog sees a cat", "a cat runs", "dogs see the cats and run"};
constexpr size_t kLongest = 6;

class TranslateText : public testing::Test {
 protected:
  TranslateText() { use(train_bpe(kLines, {.vocabulary_size = 50, .least_pair_count = 1})); }

  void use(Tokenizer tokenizer) {
    TranslatorShape shape;
    shape.vocabulary_size = tokenizer.size();
    shape.d_model = 12;
    shape.encoder_layers = shape.decoder_layers = 1;
    shape.encoder_heads = 3;
    shape.decoder_heads = 2;
    shape.encoder_ff = shape.decoder_ff = 13;
    shape.max_positions = kLongest;
    shape.eos_id = kEndId;
    shape.pad_id = shape.decoder_start_id = kPadId;
    folder.tokenizer = std::move(tokenizer);
    folder.model = std::make_unique<EncoderDecoder>(shape.config());
    folder.translator().initialise(7);
  }
  std::function<void(const std::string&)> remark() {
    return [this](const std::string& line) { remarks.push_back(line); };
  }

  ModelFolder folder;
  std::vector<std::string> remarks;
};

TEST_F(TranslateText, IsTheSearchOnTheTokenizersIds) {
  const TranslateOptions options{.search = {.beam_size = 3, .max_length = 6}};
  std::vector<std::vector<int32_t>> ids;
  for (const auto& line : {kLines[1], kLines[0]}) ids.push_back(folder.tokenizer->encode_ids(line));
  ASSERT_LE(ids[0].size(), kLongest);
  ASSERT_GT(ids[1].size(), kLongest);
  ids[1].resize(kLongest - 1);
  ids[1].push_back(kEndId);
  const auto expected = translate(folder.translator(), ids, options);
  EXPECT_THAT(translate_text(folder, {kLines[1], "", kLines[0]}, options, remark()),
              ElementsAre(folder.tokenizer->decode(expected[0][0].tokens), "",
                          folder.tokenizer->decode(expected[1][0].tokens)));
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("; source line 3 has ")));
  EXPECT_THAT(translate_text(folder, {}), IsEmpty());
}

TEST_F(TranslateText, NeverWritesWhatTheFolderForbids) {
  const TranslateOptions options{.search = {.beam_size = 1, .min_length = 3, .max_length = 6}};
  const std::string before = translate_text(folder, {kLines[1]}, options).at(0);
  const auto ids = folder.tokenizer->encode_ids(kLines[1]);
  const int32_t first = translate(folder.translator(), {&ids, 1}, options)[0][0].tokens.at(0);
  folder.generation.suppressed = {first};
  EXPECT_NE(translate_text(folder, {kLines[1]}, options).at(0), before);
}

TEST_F(TranslateText, ScoresEachPair) {
  const auto sums = score_text(folder, {"a cat", "dogs"}, {"the dog", ""});
  const std::vector<std::vector<int32_t>> sources{folder.tokenizer->encode_ids("a cat"),
                                                  folder.tokenizer->encode_ids("dogs")};
  std::vector<std::vector<int32_t>> targets{folder.tokenizer->encode_ids("the dog"), {}};
  targets[0].pop_back();
  const auto expected = score(folder.translator(), sources, targets);
  ASSERT_THAT(sums, SizeIs(2));
  double sum = 0;
  for (const float token : expected[0]) sum += token;
  EXPECT_NEAR(sums[0], sum, 1e-5);
  ASSERT_THAT(expected[1], SizeIs(1));
  EXPECT_NEAR(sums[1], expected[1][0], 1e-6);
  EXPECT_THROW(score_text(folder, {"a cat"}, {}), UsageError);
}

TEST_F(TranslateText, NamesUnknownWordsOnce) {
  use(train_word_level(kLines, {.vocabulary_size = 50}));
  const std::vector<std::string> lines{"the \xe6\xbc\xa2\xe5\xad\x97 sees \xe2\x98\x83", "a cat",
                                       "\xe2\x98\x83 zebra runs"};
  translate_text(folder, lines, {.search = {.max_length = 4}}, remark());
  EXPECT_THAT(remarks, ElementsAre("4 unknown tokens in 2 lines, e.g. '\xe6\xbc\xa2\xe5\xad\x97', "
                                   "'\xe2\x98\x83', 'zebra'"));
  remarks.clear();
  translate_text(folder, {"a \x1b[31m cat"}, {.search = {.max_length = 4}}, remark());
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("1 unknown token in 1 line, e.g. '\\u001b[31m'")));
}

TEST_F(TranslateText, NamesUnknownCharactersOfPieces) {
  translate_text(folder, {"the \xe6\xbc\xa2\xe5\xad\x97 sees", "q"}, {.search = {.max_length = 4}}, remark());
  ASSERT_THAT(remarks, SizeIs(1));
  EXPECT_THAT(remarks[0], HasSubstr("in 2 lines, e.g. '\xe6\xbc\xa2\xe5\xad\x97', 'q'"));
}

TEST_F(TranslateText, SaysWhatIsMissing) {
  folder.tokenizer.reset();
  EXPECT_THROW(translate_text(folder, {"a cat"}), FileError);
  ModelText ids(folder, {.form = LineForm::kTokenIds});
  EXPECT_THAT(ids.sources({"5 6"}, {.name = "here"}), ElementsAre(ElementsAre(5, 6, kEndId)));
  try {
    ids.targets({"5 6", "7 -1"}, {.name = "here", .first = 40});
    FAIL() << "expected a FormatError";
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("here line 41: expected token ids from 0 to"));
  }
}

}  // namespace
}  // namespace mh
