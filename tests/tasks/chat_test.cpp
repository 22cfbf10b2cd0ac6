// Chat templates: the prompts of transformers, the tokens that end an answer, and templates that are refused.
#include "multihead/tasks/chat.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/sha256.h"
#include "multihead/folders/model_folder.h"
#include "multihead/tasks/run_template.h"
#include "tests/generate/generate_golden.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::filesystem::path kTemplates = std::filesystem::path(goldens_folder()) / "chat";

std::string hash_of_text(const std::string& text) {
  Sha256 hash;
  hash.add(text.data(), text.size());
  return hash.digest().substr(0, 16);
}

ChatRole role_of(const json& name) {
  for (const auto& [known, role] : kChatRoles) {
    if (name == known) return role;
  }
  throw UsageError(name.dump());
}

/// What a template writes, or what its error says.
std::string written(const std::string& jinja, const TemplateVariables& variables,
                    bool add_generation_prompt = true) {
  try {
    return run_template(jinja, variables, add_generation_prompt, "it");
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::string refused(const std::string& jinja, size_t work = size_t{1} << 24) {
  const std::vector<ChatMessage> messages{{ChatRole::kUser, "Hi"}};
  try {
    return "accepted: " + run_template(jinja, {.messages = messages, .work = work}, true, "it");
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), AllOf(StartsWith("it: "), Not(HasSubstr("\n")))) << jinja;
    return error.what();
  }
}

void expect_answers(const json& goldens) {
  std::tm now{};
  now.tm_year = goldens["now"][0].get<int>() - 1900;
  now.tm_mon = goldens["now"][1].get<int>() - 1;
  now.tm_mday = goldens["now"][2];
  now.tm_hour = goldens["now"][3];
  now.tm_min = goldens["now"][4];
  std::mktime(&now);  // the day of the week
  for (const json& one : goldens["answers"]) {
    const std::string jinja = read_file(kTemplates / one["file"].get<std::string>());
    for (const bool prompt : {true, false}) {
      const json& answers = one[prompt ? "prompts" : "without"];
      ASSERT_FALSE(answers.empty());
      for (size_t i = 0; i < answers.size(); ++i) {
        SCOPED_TRACE(one["file"].dump() + goldens["chats"][i].dump());
        std::vector<ChatMessage> messages;
        for (const json& message : goldens["chats"][i]) messages.push_back({role_of(message[0]), message[1]});
        const std::string text =
            written(jinja, {.messages = messages, .texts = goldens["tokens"], .now = now}, prompt);
        if (answers[i].is_null()) {
          EXPECT_THAT(text, StartsWith("it: "));
        } else {
          EXPECT_EQ(hash_of_text(text), answers[i].get<std::string>()) << text;
        }
      }
    }
  }
}

TEST(Chat, WritesThePromptsOfTransformers) {
  expect_answers(json::parse(read_file(kTemplates / "expected.json")));
}

TEST(SlowChatOracle, WritesThePromptsOfTransformersOfOtherTemplates) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with transformers and jinja2";
  const char* folder = std::getenv("MULTIHEAD_TEMPLATES");  // *.jinja, such as llama.cpp's models/templates
  const test::ScratchFolder scratch;
  const std::string command =
      fmt::format("{} {}/tests/oracles/chat_goldens.py --live {} 16 500 {}", python, source_folder(),
                  (scratch / "answers.json").string(), folder == nullptr ? kTemplates.string() : folder);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  expect_answers(json::parse(read_file(scratch / "answers.json")));
}

TEST(Chat, ConstructsDoWhatTheyDoInJinja) {
  const std::vector<ChatMessage> messages{{ChatRole::kUser, "é漢 "}, {ChatRole::kAssistant, "b"}};
  const auto writes = [&](const std::string& jinja) {
    return written(jinja, {.messages = messages, .texts = {{"bos_token", "<s>"}}});
  };
  EXPECT_EQ(writes("a{% if true %}b{% endif %}"), "ab");
  EXPECT_EQ(writes("  {% if true %}\n  b\n  {% endif %}\nc\n"), "  b\nc");
  EXPECT_EQ(writes("{{ none }}{{ x }}{{ true }}{{ [1, 'a'] }}{{ tools is none }}"), "NoneTrue[1, 'a']True");
  EXPECT_EQ(
      writes("{{ messages[0].content | length }}{{ messages[0].content[1] }}{{ messages[0].content[-2] }}"),
      "3漢漢");
  EXPECT_EQ(writes("{{ messages[0].content[:2] }}|{{ messages[0].content[::-1] }}"), "é漢| 漢é");
  EXPECT_EQ(
      writes("{% for m in messages %}{% if loop.first %}{% set x = 1 %}{% endif %}{{ x }};{% endfor %}"),
      "1;;");
  EXPECT_EQ(
      writes("{% for m in messages %}{{ m.role }}{% if loop.first %}{% break %}{% endif %}{% endfor %}"),
      "user");
  EXPECT_EQ(writes("{% macro f(a, b=2, c=3) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1, c=4) }}"), "124");
  EXPECT_EQ(writes("{{ (0 - 1) % 2 }}{{ 7 / 2 }}{{ 'a' ~ none ~ x ~ 1 }}"), "13.5aNone1");
  EXPECT_EQ(writes("{{ none | default('x') }}{{ y | default('x') }}"), "Nonex");
  EXPECT_EQ(writes("{{ 'İSΟ' | lower }}"), "i̇sο");
  EXPECT_EQ(writes("{{ bos_token }}{{ eos_token }}"), "<s>");
  EXPECT_EQ(writes("{{ messages == messages[:2] }}{{ [[1], {'a': []}] != [[1], {'a': []}] }}"), "TrueFalse");
  EXPECT_EQ(writes("{{ 2 / 3 }} {{ 1.0 }} {{ 1.0 | tojson }}"), "0.6666666666666666 1.0 1.0");
}

TEST(Chat, ATemplateThatCannotBeRunIsOneLine) {
  EXPECT_EQ(refused("{{ raise_exception('No\nsuch chat') }}"), "it: it says: No\\u000asuch chat");
  EXPECT_EQ(refused("{% raw %}x{% endraw %}"), "it: Unknown statement: raw");
  EXPECT_EQ(refused("\n{{ 'a' | nosuch }}"),
            "it: Unknown (built-in) filter 'nosuch' for type String (line 2)");
  EXPECT_EQ(refused("{{ 'a' is nosuch }}"), "it: Unknown test 'nosuch' (line 1)");
  EXPECT_THAT(refused("{{ nosuch(1) }}"),
              HasSubstr("Callee is not a function: got Undefined (hint: 'nosuch')"));
  EXPECT_THAT(refused("{{ nosuch.part }}"), HasSubstr("property of Undefined (hint: 'nosuch')"));
  EXPECT_THAT(refused("{{ 'a' + x }}"), HasSubstr("Undefined (hint: 'x')"));
  EXPECT_THAT(refused("{{ 'a' + none }}"), HasSubstr("null"));
  EXPECT_THAT(refused("{{ 'ß' | upper }}"), HasSubstr("NotImplemented: the case of letters"));
  EXPECT_THAT(refused("{{ 'ΑΣ' | lower }}"), HasSubstr("NotImplemented: the case of letters"));
  EXPECT_THAT(refused("{% for t in tools %}{% endfor %}"), HasSubstr("got None"));
  EXPECT_THAT(refused("{{ [].append(1) }}"), HasSubstr("may not change a list"));
  for (const char* broken : {"{{",
                             "{%",
                             "{{ '",
                             "{%-",
                             "{% for message in messages %}",
                             "{% if x",
                             "{{ [1, }}",
                             "{{ f(1=2) }}",
                             "{% call 5 %}",
                             "{% set 1 = 2 %}",
                             "{% break %}",
                             "{{ 1 is 2 }}",
                             "{% endif %}",
                             "{{ }}",
                             "{% elif %}",
                             "{{ 9 % 0 }}",
                             "{{ 3 is divisibleby 0 }}",
                             "{{ 'a' | map }}",
                             "{# a",
                             "\xff",
                             "{{ '\xc3' }}"})
    EXPECT_THAT(refused(broken), StartsWith("it: ")) << broken;
}

TEST(Chat, ATemplateHasLimits) {
  const char* const works = "works without end";
  const char* const deep = "goes too deep";
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_THAT(refused("{% for i in range(9999999999) %}x{% endfor %}", TemplateLimits::kWork),
              HasSubstr(works));
  EXPECT_THAT(refused("{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}"),
              HasSubstr(works));
  EXPECT_THAT(refused("{{ 'x' * 999999999999 }}"), HasSubstr(works));
  const std::string doubled = "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = ";
  EXPECT_THAT(refused(doubled + "n.x + n.x %}{% endfor %}"), HasSubstr(works));
  EXPECT_THAT(refused(doubled + "n.x | replace('a', n.x) %}{% endfor %}"), HasSubstr(works));
  EXPECT_THAT(refused(doubled + "[n.x, n.x] %}{% endfor %}{{ n.x | tojson }}"), HasSubstr(works));
  EXPECT_THAT(refused(doubled + "[n.x, n.x] %}{% endfor %}{{ n.x }}"), HasSubstr(works));
  EXPECT_THAT(refused(doubled + "[n.x, n.x] %}{% endfor %}{{ n.x == n.x }}"), HasSubstr(works));
  const std::string nested = "{% set n = namespace(x=[]) %}{% for i in range(300) %}{% set n.x = ";
  EXPECT_THAT(refused(nested + "[n.x] %}{% endfor %}{{ n.x }}"), HasSubstr(deep));
  EXPECT_EQ(refused(nested + "[n.x] %}{% endfor %}done"), "accepted: done");
  EXPECT_EQ(refused(nested + "dict(a=n.x) %}{% endfor %}done"), "accepted: done");
  EXPECT_THAT(refused("{% set n = namespace() %}{% set n.n = n %}{{ n | tojson }}"), HasSubstr(deep));
  EXPECT_EQ(refused("{% set n = namespace() %}{% set n.n = n %}done"), "accepted: done");
  EXPECT_THAT(refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr(deep));
  EXPECT_THAT(refused("{{ " + repeated("(", 9999)), HasSubstr("words between two brackets"));
  EXPECT_THAT(refused("{{ " + repeated("(", 1500) + "1"), HasSubstr(deep));
  EXPECT_THAT(refused("{{ " + repeated("not ", 1900) + "1 }}"), HasSubstr(deep));
  EXPECT_THAT(refused("{{ " + repeated("1 + ", 900) + "1 }}"), HasSubstr(deep));
  EXPECT_EQ(refused("{{ " + repeated("1 + ", 60) + "1 }}"), "accepted: 61");
  EXPECT_THAT(refused("{{ 1" + repeated(" if 1 else 1", 400) + " }}"), HasSubstr(deep));
  EXPECT_THAT(refused("{{ f" + repeated("()", 900) + " }}"), HasSubstr(deep));
  EXPECT_THAT(refused("{{ x" + repeated(" | trim", 900) + " }}"), HasSubstr(deep));
  EXPECT_THAT(refused(repeated("{% if 1 %}", 9999)), HasSubstr(deep));
  EXPECT_THAT(refused("{% if 1 %}" + repeated("{% elif 1 %}", 9999)), HasSubstr(deep));
  EXPECT_THAT(refused(std::string(kLongestTemplate + 1, 'x')), HasSubstr("a template may have 1048576"));
  const std::string longest(1000000, 'x');
  EXPECT_THAT(
      refused("{% set x %}" + longest + "{% endset %}" + repeated("{{ x }}", 5), TemplateLimits::kWork),
      HasSubstr("its text has 5000000 bytes, and may have 4194304"));
}

class ChatOfFolder : public testing::Test {
 protected:
  ChatTemplate with(const std::string& jinja) {
    folder.chat_template = jinja;
    return ChatTemplate::of(folder);
  }

  ModelFolder folder = load_model_folder(test::generate_folder());
};

TEST_F(ChatOfFolder, ReadsItsSpecialTokens) {
  const ChatTemplate chat = with("{{ bos_token }}{{ messages[-1].content }}{{ eos_token }}{{ pad_token }}");
  EXPECT_EQ(chat.prompt("a"), "<|endoftext|>a<|endoftext|>");
}

TEST_F(ChatOfFolder, AnAnswerEndsWithWhatTheTemplateWritesBehindIt) {
  const Tokenizer& tokenizer = *folder.tokenizer;
  const std::string each = "{% for m in messages %}{{ m.role + m.content + ";
  EXPECT_EQ(ChatTemplate::of(folder).end_token(tokenizer), tokenizer.id_of("<|im_end|>"));
  EXPECT_EQ(with(each + "' ' + eos_token }}{% endfor %}").end_token(tokenizer),
            tokenizer.id_of("<|endoftext|>"));
  EXPECT_EQ(with(each + "'\n' }}{% endfor %}").end_token(tokenizer), std::nullopt);
  EXPECT_EQ(with(each + "' dog' }}{% endfor %}").end_token(tokenizer), std::nullopt);
  EXPECT_EQ(with("{% if messages[-1].role != 'user' %}{{ raise_exception('x') }}{% endif %}" + each +
                 "'<|im_end|>' }}{% endfor %}")
                .end_token(tokenizer),
            tokenizer.id_of("<|im_end|>"));
  EXPECT_EQ(with("{{ raise_exception('x') }}").end_token(tokenizer), std::nullopt);
}

TEST_F(ChatOfFolder, FindsTheMessage) {
  const auto message_in = [](const ChatPrompt& prompt) {
    return prompt.text.substr(prompt.begin, prompt.end - prompt.begin);
  };
  const ChatTemplate trimmed = with("a{% for m in messages %}{{ m.role + m.content | trim }}{% endfor %}b");
  const std::vector<ChatMessage> earlier{{ChatRole::kUser, "é"}, {ChatRole::kAssistant, "f"}};
  const ChatPrompt found = trimmed.placed(" é ", "s", earlier);
  EXPECT_EQ(found.text, "asystemsuseréassistantfuseréb");
  EXPECT_EQ(message_in(found), "é");
  EXPECT_EQ(found.end, found.text.size() - 1);
  EXPECT_EQ(message_in(with("{{ messages[-1].content | length }}").placed("abc")), "");
  EXPECT_EQ(message_in(with("x").placed("abc")), "");
}

TEST_F(ChatOfFolder, AMarkerThatTheTokenizerCutsIsRefused) {
  const auto complaint = [&](const std::string& jinja) -> std::string {
    try {
      with(jinja);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  auto document = json::parse(folder.tokenizer->to_json());
  auto& added = document["added_tokens"];
  const auto marker = std::find_if(added.begin(), added.end(),
                                   [](const json& token) { return token["content"] == "<|im_end|>"; });
  ASSERT_NE(marker, added.end());
  document["model"]["vocab"]["<|im_end|>"] = (*marker)["id"];
  added.erase(marker);
  folder.tokenizer = Tokenizer::from_json(document.dump(), "file");
  EXPECT_THAT(complaint("{{ '<|im_end|>' + messages[0].content }}"),
              AllOf(HasSubstr("reads <|im_end|>, which its chat_template writes, as "),
                    EndsWith("list it among its added tokens")));
  EXPECT_EQ(complaint("{{ '<|nosuch|>' + messages[0].content }}"), "accepted");
  // What a message or an instruction says is no marker.
  EXPECT_EQ(complaint("<| a |> {{ messages[0].content }} a <|b"), "accepted");
  EXPECT_EQ(complaint("{{ '<|im_start|>' + messages[0].content }}"), "accepted");
  EXPECT_THAT(complaint(""), HasSubstr("has no chat_template"));
  EXPECT_THAT([&] { with("{% if true %}{% endif %}").prompt("a"); },
              testing::ThrowsMessage<UsageError>(EndsWith("it writes no text of the messages")));
}

}  // namespace
}  // namespace mh
