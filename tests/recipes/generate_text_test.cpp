// Prompts to text: streaming, stop strings, chats, and what a folder cannot do.
#include "multihead/recipes/generate_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/recipes/chat.h"
#include "tests/generate/generate_golden.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class GenerateText : public testing::Test {
 protected:
  static GenerateTextOptions greedy(int32_t max_new_tokens) {
    GenerateTextOptions options;
    options.generate.next_token = NextToken::kGreedy;
    options.generate.max_new_tokens = max_new_tokens;
    return options;
  }

  /// The same model with another chat template.
  ModelFolder with_template(const std::string& jinja) const {
    ModelFolder other = load_model_folder(test::generate_folder());
    other.chat_template = jinja;
    return other;
  }

  ModelFolder folder = load_model_folder(test::generate_folder());
};

TEST_F(GenerateText, IsTheTextOfTransformersAndComesPieceByPiece) {
  for (const auto& expected : test::generate_golden()["generated"]) {
    const auto& given = expected["options"];
    if (given.contains("num_beams")) continue;
    GenerateTextOptions options = greedy(given["max_new_tokens"]);
    options.generate.filters.repetition_penalty = given.value("repetition_penalty", 1.0);
    std::string streamed;
    int pieces = 0;
    options.on_text = [&](size_t n, std::string_view piece) {
      EXPECT_EQ(n, 0u);
      streamed += piece;
      ++pieces;
    };
    const GeneratedText found = generate_text(folder, {expected["prompt"]}, options).at(0);
    EXPECT_EQ(found.text, expected["text"].get<std::string>());
    EXPECT_EQ(streamed, found.text);
    EXPECT_GT(pieces, 3);
    EXPECT_EQ(found.prompt, expected["prompt_ids"].get<std::vector<int32_t>>());
  }
}

TEST_F(GenerateText, EndsBeforeAStopStringThatLiesInSeveralTokens) {
  const std::string whole = generate_text(folder, {"two"}, greedy(25)).at(0).text;
  // Everything between two places of the text, from within a token to within another.
  for (const auto& [begin, length] : {std::pair<size_t, size_t>{12, 4}, {3, 9}, {whole.size() - 1, 1}}) {
    const std::string stop = whole.substr(begin, length);
    GenerateTextOptions options = greedy(25);
    options.stop = {"never", stop};
    std::string streamed;
    options.on_text = [&](size_t, std::string_view piece) { streamed += piece; };
    const GeneratedText found = generate_text(folder, {"two"}, options).at(0);
    EXPECT_EQ(found.text, whole.substr(0, whole.find(stop)));
    EXPECT_EQ(streamed, found.text);
    EXPECT_EQ(found.generated.end, GenerationEnd::kStopped);
  }
  GenerateTextOptions options = greedy(25);
  options.stop = {"", "x"};
  EXPECT_THROW(generate_text(folder, {"two"}, options), UsageError);
}

TEST_F(GenerateText, SeveralPromptsAndAnEmptyOne) {
  GenerateTextOptions options;
  options.generate.max_new_tokens = 7;
  const auto found = generate_text(folder, {"two dogs", "", "a"}, options);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1].prompt, std::vector<int32_t>{folder.language_model().facts().start_id});
  options.generate.first_number = 2;
  EXPECT_EQ(generate_text(folder, {"a"}, options)[0].text, found[2].text);
  EXPECT_TRUE(generate_text(folder, {}, options).empty());
}

TEST_F(GenerateText, ABeamSearchGivesItsTextAtTheEnd) {
  GenerateTextOptions options = greedy(9);
  options.generate.next_token = NextToken::kBeam;
  std::string streamed;
  options.on_text = [&](size_t, std::string_view piece) { streamed += piece; };
  const auto found = generate_text(folder, {"does"}, options);
  EXPECT_EQ(streamed, found[0].text);
  EXPECT_FALSE(streamed.empty());
  options.stop = {"x"};
  EXPECT_THAT([&] { generate_text(folder, {"does"}, options); },
              ThrowsMessage<UsageError>(HasSubstr("`stop`")));
}

TEST_F(GenerateText, TheEndOfThePositionsIsSaid) {
  GenerateTextOptions options = greedy(1000);
  options.generate.filters.suppressed = folder.end_tokens;
  std::vector<std::string> remarks;
  options.remark = [&](const std::string& line) { remarks.push_back(line); };
  EXPECT_EQ(generate_text(folder, {"two"}, options)[0].generated.end, GenerationEnd::kMaxPositions);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_THAT(remarks[0], HasSubstr("prompt 1 ends at the model's longest, 67 tokens"));
  std::string long_prompt;
  for (int i = 0; i < 70; ++i) long_prompt += " cat";
  EXPECT_THAT(
      [&] {
        generate_text(folder, {"two", long_prompt});
      },
      ThrowsMessage<UsageError>(HasSubstr("prompt 2 has ")));
  EXPECT_THROW(generate_text(folder, {"\xff"}), FormatError);
}

TEST_F(GenerateText, ChatTemplatesOfChatMlAreKnown) {
  const std::string message = "Why is the sky blue?\nSay it.";
  int known = 0;
  for (const auto& chat : test::generate_golden()["chats"]) {
    SCOPED_TRACE(chat["name"].get<std::string>());
    const auto found = ChatTemplate::of(chat["template"].get<std::string>());
    EXPECT_EQ(found.has_value(), chat["name"] != "llama2");
    if (!found) continue;
    ++known;
    EXPECT_EQ(found->prompt(message), chat["prompt"]);
    EXPECT_EQ(found->prompt(message, "Be short."), chat["with_system"]);
  }
  EXPECT_EQ(known, 3);
  for (const char* broken : {"{{", "{%", "{{ '", "{%-", "{% for message in messages %}", "'", "-%}"})
    EXPECT_FALSE(ChatTemplate::of(std::string(broken))) << broken;
}

TEST_F(GenerateText, AChatEndsWithItsEndToken) {
  GenerateTextOptions options = greedy(5);
  options.chat = true;
  options.system = "x";
  folder.end_tokens.clear();
  const auto found = generate_text(folder, {"two"}, options).at(0);
  const Tokenizer& tokenizer = *folder.tokenizer;
  EXPECT_EQ(found.prompt, tokenizer.encode_ids(ChatTemplate::of(folder).prompt("two", "x"), false));
  EXPECT_EQ(found.prompt[0], tokenizer.id_of("<|im_start|>"));
  // Its logit alone is left.
  for (int32_t token = 0; token < tokenizer.size(); ++token) {
    if (token != tokenizer.id_of(kChatEnd)) options.generate.filters.suppressed.push_back(token);
  }
  const auto ended = generate_text(folder, {"two"}, options).at(0);
  EXPECT_EQ(ended.generated.end, GenerationEnd::kEndToken);
  EXPECT_EQ(ended.text, "");
  options.chat = false;
  EXPECT_EQ(generate_text(folder, {"two"}, options)[0].generated.end, GenerationEnd::kMaxNewTokens);
}

TEST_F(GenerateText, SaysWhatAFolderCannotDo) {
  GenerateTextOptions chat;
  chat.chat = true;
  EXPECT_THAT([&] { generate_text(with_template(""), {"a"}, chat); },
              ThrowsMessage<UsageError>(HasSubstr("has no chat_template")));
  EXPECT_THAT([&] { generate_text(with_template("{{ messages }}"), {"a"}, chat); },
              ThrowsMessage<UsageError>(HasSubstr("is not ChatML")));
  const ModelFolder translator = load_model_folder(fs::path(MULTIHEAD_TEST_DATA) / "marian" / "relu");
  EXPECT_THAT([&] { generate_text(translator, {"a"}); },
              ThrowsMessage<UsageError>(HasSubstr("use `multihead translate`")));
  const ModelFolder encoder = load_model_folder(fs::path(MULTIHEAD_TEST_DATA) / "bert" / "masked");
  EXPECT_THAT([&] { generate_text(encoder, {"a"}); }, ThrowsMessage<UsageError>(HasSubstr("bert")));
  const ModelFolder ids = load_model_folder(fs::path(MULTIHEAD_TEST_DATA) / "gpt2" / "tied");
  EXPECT_THAT([&] { generate_text(ids, {"a"}); }, ThrowsMessage<FileError>(HasSubstr("no tokenizer.json")));
}

TEST(SlowSmolLm2Text, IsThatOfTransformers) {
  const char* models = std::getenv("MULTIHEAD_MODELS");
  if (models == nullptr) GTEST_SKIP() << "set MULTIHEAD_MODELS to the folder that scripts/models made";
  const ModelFolder folder = load_model_folder(fs::path(models) / "smollm2.gguf");
  const auto cases =
      nlohmann::json::parse(read_file(fs::path(MULTIHEAD_TEST_DATA) / "generate" / "smollm2.json"));
  ASSERT_EQ(cases.size(), 4u);
  for (const auto& expected : cases) {
    const auto& given = expected["options"];
    SCOPED_TRACE(expected["prompt"].get<std::string>() + " " + given.dump());
    GenerateTextOptions options{.chat = expected["chat"]};
    options.generate = {.next_token = given.contains("num_beams") ? NextToken::kBeam : NextToken::kGreedy,
                        .filters = {.repetition_penalty = given.value("repetition_penalty", 1.0)},
                        .beam_size = given.value("num_beams", 1),
                        .length_penalty = {.alpha = given.value("length_penalty", 1.0)},
                        .max_new_tokens = given["max_new_tokens"]};
    const GeneratedText found = generate_text(folder, {expected["prompt"]}, options).at(0);
    EXPECT_EQ(found.prompt, expected["prompt_ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(found.generated.tokens, expected["tokens"].get<std::vector<int32_t>>());
    EXPECT_EQ(found.text, expected["text"].get<std::string>());
  }
}

}  // namespace
}  // namespace mh
