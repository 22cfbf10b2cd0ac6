// Token ids in place of texts give what the texts give, and are refused in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/tasks/embed_text.h"
#include "multihead/tasks/generate_text.h"
#include "tests/generate/generate_golden.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class TokenIds : public testing::Test {
 protected:
  std::vector<int32_t> ids_of(const std::string& text) const {
    return folder.source_tokens().encode_ids(text);
  }

  ModelFolder folder = load_model_folder(test::generate_folder());
  std::vector<std::string> texts = {"two dogs run", "a man sees the dog", "she sleeps"};
};

TEST_F(TokenIds, AreObservedAsTheText) {
  const Observation of_text = observe_text(folder, texts[1]),
                    of_ids = observe_tokens(folder, ids_of(texts[1]));
  EXPECT_EQ(of_ids.target.ids, of_text.target.ids);
  EXPECT_EQ(of_ids.target.labels, of_text.target.labels);
  EXPECT_EQ(of_ids.target.offsets.size(), of_text.target.ids.size());
  const HeadName head{"decoder.1.self_attention", 2};
  const ConstMatrixView expected = of_text.weights(head), found = of_ids.weights(head);
  ASSERT_EQ(found.rows, expected.rows);
  for (int64_t i = 0; i < found.rows; ++i)
    EXPECT_TRUE(std::equal(found.row(i), found.row(i) + found.cols, expected.row(i)));

  EXPECT_THAT([&] { observe_tokens(folder, {}); }, ThrowsMessage<UsageError>(HasSubstr("text 1: no tokens")));
  EXPECT_THAT([&] { observe_tokens(folder, {1, -1}); }, ThrowsMessage<UsageError>(HasSubstr("got -1")));
  EXPECT_THAT([&] { observe_tokens(folder, std::vector<int32_t>(1009, 5)); },
              ThrowsMessage<ShapeError>(HasSubstr("text 1: expected at most 67 tokens")));
  EXPECT_THAT([&] { observe_tokens(folder, {5}, "a"); },
              ThrowsMessage<UsageError>(HasSubstr("which reads one text")));
  EXPECT_THAT([&] { observe_tokens(folder, {5}, {}, {.pair = "a"}); },
              ThrowsMessage<UsageError>(HasSubstr("a pair is made of two texts")));
}

TEST_F(TokenIds, NeedNoTokenizerToBeObserved) {
  const Observation whole = observe_tokens(folder, {5, 11, 7}, {}, {.keep = {"decoder.states"}});
  folder.tokenizer = std::nullopt;
  const Observation bare = observe_tokens(folder, {5, 11, 7}, {}, {.keep = {"decoder.states"}});
  EXPECT_THAT(bare.target.labels, testing::ElementsAre("5", "11", "7"));
  const Tensor &found = bare.value("decoder.states"), &expected = whole.value("decoder.states");
  EXPECT_TRUE(std::equal(found.data(), found.data() + found.size(), expected.data()));
}

TEST_F(TokenIds, AreContinuedAsTheText) {
  GenerateTextOptions options;
  options.generate.max_new_tokens = 7;
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& text : texts) ids.push_back(ids_of(text));
  const std::vector<GeneratedText> expected = generate_text(folder, texts, options),
                                   found = continue_tokens(folder, ids, options);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].text, expected[i].text);
    EXPECT_EQ(found[i].prompt, ids[i]);
  }
  options.chat = true;
  EXPECT_THAT([&] { continue_tokens(folder, ids, options); },
              ThrowsMessage<UsageError>(HasSubstr("a chat is made of text")));
}

TEST_F(TokenIds, AreEmbeddedAsTheText) {
  const SentenceModel model =
      load_sentence_model(std::filesystem::path(goldens_folder()) / "sentences" / "dense");
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& text : texts) ids.push_back(model.folder.source_tokens().encode_ids(text));
  const Tensor expected = embed_text(model, texts), found = embed_tokens(model, ids);
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_TRUE(std::equal(found.data(), found.data() + found.size(), expected.data()));
  EXPECT_THAT(
      [&] {
        embed_tokens(model, {{5}, {}});
      },
      ThrowsMessage<UsageError>(HasSubstr("text 2: no tokens")));
  EXPECT_THAT([&] { embed_tokens(model, {{5}}, {.prompt = "a"}); },
              ThrowsMessage<UsageError>(HasSubstr("prompts and pairs are made of text")));
}

}  // namespace
}  // namespace mh
