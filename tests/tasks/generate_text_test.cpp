// Prompts to text: streaming, stop strings, chats, and what a folder cannot do.
#include "multihead/tasks/generate_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/tasks/chat.h"
#include "multihead/tasks/chat_file.h"
#include "tests/generate/generate_golden.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
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
    if (given.contains("num_beams") || given.contains("stop_strings")) continue;
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

TEST_F(GenerateText, SearchesStopAtStopStringsAsTransformersDoes) {
  int beams = 0;
  for (const auto& expected : test::generate_golden()["generated"]) {
    const auto& given = expected["options"];
    if (!given.contains("stop_strings")) continue;
    SCOPED_TRACE(given.dump());
    GenerateTextOptions options = greedy(given["max_new_tokens"]);
    options.stop = given["stop_strings"];
    if (given.contains("num_beams")) {
      ++beams;
      options.generate.next_token = NextToken::kBeam;
      options.generate.beam_size = given["num_beams"];
      options.generate.length_penalty.alpha = given["length_penalty"];
      if (given["early_stopping"] == true) options.generate.early_stopping = EarlyStopping::kTrue;
    }
    const GeneratedText found = generate_text(folder, {expected["prompt"]}, options).at(0);
    std::vector<int32_t> tokens = expected["tokens"];
    const std::string stopped = expected["stopped"];  // the string that came, or none
    if (stopped.empty()) tokens.pop_back();           // the end token
    EXPECT_EQ(found.generated.tokens, tokens);
    EXPECT_EQ(found.generated.end, stopped.empty() ? GenerationEnd::kEndToken : GenerationEnd::kStopped);
    // transformers leaves the stop string there, and what else its token spells.
    const std::string text = expected["text"];
    EXPECT_EQ(found.text, stopped.empty() ? text : text.substr(0, text.find(stopped)));
    EXPECT_THAT(found.generated.log_probabilities,
                testing::Pointwise(testing::FloatNear(1e-4f),
                                   expected["log_probabilities"].get<std::vector<float>>()));
  }
  EXPECT_GE(beams, 4);
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
  options.stop = {""};
  EXPECT_THROW(generate_text(folder, {"does"}, options), UsageError);
}

TEST_F(GenerateText, TheEndOfThePositionsIsSaid) {
  GenerateTextOptions options = greedy(1000);
  options.generate.filters.suppressed = folder.generation.end_tokens;
  std::vector<std::string> remarks;
  options.remark = [&](const std::string& line) { remarks.push_back(line); };
  EXPECT_EQ(generate_text(folder, {"two"}, options)[0].generated.end, GenerationEnd::kMaxPositions);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_THAT(remarks[0], HasSubstr("prompt 1 ends at the model's longest, 67 tokens"));
  EXPECT_THROW(generate_text(folder, {"\xff"}), FormatError);
}

TEST_F(GenerateText, LongPromptsLoseTheirBeginningSoThatNewTokensFit) {
  const Tokenizer& tokenizer = *folder.tokenizer;
  std::string prompt = "two dogs";
  while (tokenizer.encode_ids(prompt).size() < 90) prompt += " see the garden";
  const std::vector<int32_t> whole = tokenizer.encode_ids(prompt);
  std::vector<std::string> remarks;
  for (const auto& [new_tokens, stay] : {std::pair{7, 60}, {33, 34}, {34, 34}, {1000, 34}, {1, 66}}) {
    GenerateTextOptions options = greedy(new_tokens);
    options.remark = [&](const std::string& line) { remarks.push_back(line); };
    options.generate.filters.suppressed = folder.generation.end_tokens;
    remarks.clear();
    const auto found = generate_text(folder, {"two", prompt}, options);
    EXPECT_EQ(found[1].prompt, std::vector<int32_t>(whole.end() - stay, whole.end()));
    EXPECT_EQ(found[1].text, generate_text(folder, {tokenizer.decode(found[1].prompt)}, options)[0].text);
    EXPECT_EQ(std::ssize(found[1].generated.tokens), std::min(new_tokens, 67 - stay));
    ASSERT_FALSE(remarks.empty());
    EXPECT_EQ(remarks[0],
              fmt::format("1 of 2 prompts cut to the {} tokens that the model reads before {} new "
                          "one{}, at its start; prompt 2 has {} tokens",
                          stay, 67 - stay, stay == 66 ? "" : "s", whole.size()));
  }
  GenerateTextOptions strict = greedy(7);
  strict.strict = true;
  strict.from = {.name = "FILE", .first = 5};
  EXPECT_THAT(
      [&] {
        generate_text(folder, {"two", prompt}, strict);
      },
      ThrowsMessage<FormatError>(AllOf(HasSubstr("FILE line 6 has "),
                                       HasSubstr("the model reads 60 before 7 new ones; shorten it"))));
  EXPECT_NO_THROW(generate_text(folder, {tokenizer.decode(std::span(whole).last(60))}, strict));
}

TEST_F(GenerateText, ALongMessageLosesItsBeginningAndTheTemplateStays) {
  const Tokenizer& tokenizer = *folder.tokenizer;
  const ChatTemplate chat = ChatTemplate::of(folder);
  GenerateTextOptions options = greedy(7);
  options.chat = true;
  options.system = "é";
  std::string message = "漢字";
  for (int i = 0; i < 30; ++i) message += " the dog sees";
  const auto found = generate_text(folder, {message}, options)[0].prompt;
  const auto whole = tokenizer.encode_ids(chat.prompt(message, "é"), false);
  ASSERT_EQ(found.size(), 60u);
  ASSERT_GT(whole.size(), 60u);
  const ChatPrompt placed = chat.placed(message, "é");
  const size_t opening = tokenizer.encode_ids(placed.text.substr(0, placed.begin), false).size();
  EXPECT_TRUE(std::equal(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(opening), whole.begin()));
  EXPECT_TRUE(
      std::equal(found.rbegin(), found.rend() - static_cast<std::ptrdiff_t>(opening), whole.rbegin()));
  options.system = message;
  EXPECT_THAT([&] { generate_text(folder, {"two"}, options); },
              ThrowsMessage<FormatError>(AllOf(HasSubstr("prompt 1: "), HasSubstr("system message"))));
}

TEST_F(GenerateText, ChatTemplatesWriteThePromptsOfTransformers) {
  const std::string message = "Why is the sky blue?\nSay it.";
  ASSERT_EQ(test::generate_golden()["chats"].size(), 4u);
  for (const auto& chat : test::generate_golden()["chats"]) {
    SCOPED_TRACE(chat["name"].get<std::string>());
    const ChatTemplate found{.jinja = chat["template"]};
    EXPECT_EQ(found.prompt(message), chat["prompt"]);
    EXPECT_EQ(found.prompt(message, "Be short."), chat["with_system"]);
  }
}

TEST_F(GenerateText, AChatOfSeveralTurnsIsWrittenMessageByMessage) {
  GenerateTextOptions options = greedy(3);
  options.chat = true;
  options.earlier = {{ChatRole::kSystem, "é"}, {ChatRole::kUser, "a?"}, {ChatRole::kAssistant, "b"}};
  const auto found = generate_text(folder, {"c"}, options).at(0);
  EXPECT_EQ(found.prompt,
            folder.tokenizer->encode_ids("<|im_start|>system\né<|im_end|>\n<|im_start|>user\na?"
                                         "<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
                                         "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n",
                                         false));
  // Without a system message of its own the chat has the one of `system`.
  options.earlier.erase(options.earlier.begin());
  options.system = "é";
  EXPECT_EQ(generate_text(folder, {"c"}, options)[0].prompt, found.prompt);
  const auto refused = [&](const std::vector<ChatMessage>& earlier, const char* part) {
    options.earlier = earlier;
    EXPECT_THAT([&] { generate_text(folder, {"c"}, options); }, ThrowsMessage<UsageError>(HasSubstr(part)));
  };
  refused({{ChatRole::kSystem, "x"}}, "begins with a system message of its own");
  options.system.reset();
  refused({{ChatRole::kUser, "a"}, {ChatRole::kSystem, "x"}}, "only the first message");
  options.chat = false;
  refused({{ChatRole::kUser, "a"}}, "`earlier` messages need `chat`");
}

TEST_F(GenerateText, TheOldestMessagesOfALongChatAreLeftOut) {
  const ChatTemplate chat = ChatTemplate::of(folder);
  GenerateTextOptions options = greedy(7);
  options.chat = true;
  options.system = "x";
  std::vector<std::string> remarks;
  options.remark = [&](const std::string& line) { remarks.push_back(line); };
  for (int i = 0; i < 6; ++i)
    options.earlier.push_back(
        {i % 2 == 0 ? ChatRole::kUser : ChatRole::kAssistant, "cat " + std::to_string(i)});
  const auto tokens_with = [&](size_t last_messages) {
    const std::span<const ChatMessage> all(options.earlier);
    return folder.tokenizer->encode_ids(chat.prompt("two", "x", all.last(last_messages)), false);
  };
  ASSERT_GT(tokens_with(6).size(), 60u);  // of 67 positions 7 are for the answer
  size_t kept = 6;
  while (kept > 0 && (tokens_with(kept).size() > 60 || options.earlier[6 - kept].role != ChatRole::kUser))
    --kept;
  EXPECT_EQ(generate_text(folder, {"two"}, options)[0].prompt, tokens_with(kept));
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0],
            fmt::format("the {} oldest messages before prompt 1 left out; the model reads 60 tokens "
                        "before 7 new ones",
                        6 - kept));
  // A message that is too long by itself loses its beginning, behind the template.
  std::string message;
  for (int i = 0; i < 30; ++i) message += " the dog sees";
  const auto cut = generate_text(folder, {message}, options)[0].prompt;
  options.earlier.clear();
  EXPECT_EQ(cut, generate_text(folder, {message}, options)[0].prompt);
  options.earlier = {{ChatRole::kUser, message}};
  options.strict = true;
  EXPECT_THAT([&] { generate_text(folder, {"two"}, options); },
              ThrowsMessage<FormatError>(HasSubstr("the model reads 60 before 7 new ones")));
}

TEST(ChatFile, HasAMessageALine) {
  const std::vector<std::string> lines{
      R"({"role": "system", "content": "Be\nshort."})", R"({"content": "\u00e9?", "role": "user"})",
      R"({"role": "assistant", "content": ""})", R"({"role": "user", "content": "b"})"};
  const std::vector<ChatMessage> chat = parse_chat(lines, "talk");
  ASSERT_EQ(chat.size(), 4u);
  EXPECT_EQ(chat[0].role, ChatRole::kSystem);
  EXPECT_EQ(chat[0].content, "Be\nshort.");
  EXPECT_EQ(chat[1].role, ChatRole::kUser);
  EXPECT_EQ(chat[1].content, "é?");
  EXPECT_EQ(chat[2].role, ChatRole::kAssistant);
  const auto refused = [&](const std::vector<std::string>& wrong, const std::string& part) {
    EXPECT_THAT([&] { parse_chat(wrong, "talk"); }, ThrowsMessage<FormatError>(HasSubstr(part))) << part;
  };
  refused({}, "talk is empty; give a message a line");
  refused({lines[1], ""}, "talk line 2 is empty; give a message a line, and leave no line empty");
  refused({lines[0], " \t", lines[1]}, "talk line 2 is empty");
  refused({lines[1], "hello"}, "talk line 2");
  refused({"[1]"}, "talk line 1: expected {\"role\": \"user\", \"content\": \"...\"}");
  refused({R"({"role": "user"})"}, "talk line 1: expected {\"role\"");
  refused({R"({"role": "user", "content": 3})"}, "talk line 1: expected {\"role\"");
  refused({R"({"role": "user", "content": "a", "name": "b"})"}, "talk line 1: expected {\"role\"");
  refused({R"({"role": "tool", "content": "a"})"},
          "talk line 1: expected the role system, user or assistant, got \"tool\"");
  refused({lines[1], lines[0]}, "talk line 2: a system message must be the first");
  refused({lines[0], lines[1], lines[2]}, "talk: the last message has the role assistant");
  refused({lines[0]}, "talk: the last message has the role system");
}

TEST_F(GenerateText, AChatEndsWithItsEndToken) {
  GenerateTextOptions options = greedy(5);
  options.chat = true;
  options.system = "x";
  folder.generation.end_tokens.clear();
  const auto found = generate_text(folder, {"two"}, options).at(0);
  const Tokenizer& tokenizer = *folder.tokenizer;
  EXPECT_EQ(found.prompt, tokenizer.encode_ids(ChatTemplate::of(folder).prompt("two", "x"), false));
  EXPECT_EQ(found.prompt[0], tokenizer.id_of("<|im_start|>"));
  // Its logit alone is left.
  for (int32_t token = 0; token < tokenizer.size(); ++token) {
    if (token != tokenizer.id_of("<|im_end|>")) options.generate.filters.suppressed.push_back(token);
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
  // A tokenizer with the markers in its vocabulary alone cuts them into pieces.
  const std::string json = folder.tokenizer->to_json();
  for (const std::string marker : {"<|im_start|>", "<|im_end|>"}) {
    auto document = nlohmann::json::parse(json);
    auto& added = document["added_tokens"];
    const auto is_marker = [&](const nlohmann::json& token) { return token["content"] == marker; };
    const auto found = std::find_if(added.begin(), added.end(), is_marker);
    ASSERT_NE(found, added.end());
    document["model"]["vocab"][marker] = (*found)["id"];
    added.erase(found);
    ModelFolder other = load_model_folder(test::generate_folder());
    other.tokenizer = Tokenizer::from_json(document.dump(), "file");
    EXPECT_THAT(
        [&] { generate_text(other, {"a"}, chat); },
        ThrowsMessage<UsageError>(AllOf(HasSubstr("reads " + marker), HasSubstr("tokens in place of its own"),
                                        HasSubstr("list it among its added tokens"))));
  }
  EXPECT_THAT([&] { generate_text(with_template(""), {"a"}, chat); },
              ThrowsMessage<UsageError>(HasSubstr("has no chat_template")));
  EXPECT_THAT([&] { generate_text(with_template("{% nosuch %}"), {"a"}, chat); },
              ThrowsMessage<UsageError>(
                  AllOf(HasSubstr("the chat_template of "), HasSubstr("Unknown statement: nosuch"))));
  const ModelFolder translator = load_model_folder(fs::path(goldens_folder()) / "marian" / "relu");
  EXPECT_THAT([&] { generate_text(translator, {"a"}); },
              ThrowsMessage<UsageError>(HasSubstr("name a causal model")));
  const ModelFolder encoder = load_model_folder(fs::path(goldens_folder()) / "bert" / "masked");
  EXPECT_THAT([&] { generate_text(encoder, {"a"}); }, ThrowsMessage<UsageError>(HasSubstr("bert")));
  const ModelFolder ids = load_model_folder(fs::path(goldens_folder()) / "gpt2" / "tied");
  EXPECT_THAT([&] { generate_text(ids, {"a"}); }, ThrowsMessage<FileError>(HasSubstr("no tokenizer.json")));
}

TEST(SlowSmolLm2Text, IsThatOfTransformers) {
  const char* models = std::getenv("MULTIHEAD_MODELS");
  if (models == nullptr) GTEST_SKIP() << "set MULTIHEAD_MODELS to the folder that scripts/models made";
  const ModelFolder folder = load_model_folder(fs::path(models) / "smollm2.gguf");
  const auto cases =
      nlohmann::json::parse(read_file(fs::path(goldens_folder()) / "generate" / "smollm2.json"));
  ASSERT_EQ(cases.size(), 4u);
  for (const auto& expected : cases) {
    const auto& given = expected["options"];
    SCOPED_TRACE(expected["prompt"].get<std::string>() + " " + given.dump());
    GenerateTextOptions options{.chat = expected["chat"]};
    options.generate = {.next_token = given.contains("num_beams") ? NextToken::kBeam : NextToken::kGreedy,
                        .filters = {.repetition_penalty = given.value("repetition_penalty", 1.0)},
                        .beam_size = given.value("num_beams", 1),
                        .length_penalty = {.alpha = given.value("length_penalty", 1.0)},
                        .early_stopping = EarlyStopping::kTrue,
                        .max_new_tokens = given["max_new_tokens"]};
    const GeneratedText found = generate_text(folder, {expected["prompt"]}, options).at(0);
    EXPECT_EQ(found.prompt, expected["prompt_ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(found.generated.tokens, expected["tokens"].get<std::vector<int32_t>>());
    EXPECT_EQ(found.text, expected["text"].get<std::string>());
  }
}

}  // namespace
}  // namespace mh
