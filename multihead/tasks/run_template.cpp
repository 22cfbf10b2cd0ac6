#include "multihead/tasks/run_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"
#include "multihead/text/unicode.h"

// The engine is a part of this file, under other names: a program may link llama.cpp, too.
#define jinja mh_jinja
#define g_jinja_debug mh_g_jinja_debug
#include "jinja/lexer.cpp"
#undef FILENAME
#include "jinja/parser.cpp"
#undef FILENAME
#include "jinja/runtime.cpp"
#undef FILENAME
#include "jinja/value.cpp"
#undef FILENAME
#include "jinja/string.cpp"
#undef jinja
#undef g_jinja_debug

namespace mh {
namespace {

namespace engine = mh_jinja;
using engine::mk_val;

/// Expressions are trees, one level for each operator in a chain: what no person writes in one pair of brackets is
/// refused before a tree is made of it, since taking down a high one needs as many levels of the stack.
constexpr size_t kMostTokensOfBlock = 2000;

void check_blocks(const std::vector<engine::token>& tokens) {
  size_t count = 0;
  for (const engine::token& token : tokens) {
    const bool begins = token.t == engine::token::open_statement || token.t == engine::token::open_expression;
    count = begins ? 0 : count + 1;
    if (count > kMostTokensOfBlock && token.t != engine::token::text && token.t != engine::token::comment)
      throw TemplateStop(fmt::format("more than {} words between two brackets", kMostTokensOfBlock));
  }
}

engine::value value_of(std::span<const ChatMessage> messages) {
  auto list = mk_val<engine::value_array>();
  for (const ChatMessage& message : messages) {
    auto object = mk_val<engine::value_object>();
    object->insert("role", mk_val<engine::value_string>(name_of(message.role, kChatRoles)));
    object->insert("content", mk_val<engine::value_string>(message.content));
    list->push_back(std::move(object));
  }
  return list;
}

std::string time_as(const std::string& format, const std::optional<std::tm>& now) {
  std::tm time{};
  if (now) {
    time = *now;
  } else {
    const std::time_t clock = std::time(nullptr);
    localtime_r(&clock, &time);
  }
  std::array<char, 256> text{};
  // A text of no bytes and one that is too long look alike.
  const size_t length = std::strftime(text.data(), text.size(), format.c_str(), &time);
  if (length == 0 && !format.empty()) throw TemplateStop("strftime_now: the date is too long");
  return {text.data(), length};
}

void add_functions(engine::context& context, const std::optional<std::tm>& now) {
  const auto add = [&](const char* name, const engine::func_handler& function) {
    context.set_val(name, mk_val<engine::value_func>(name, function));
  };
  add("raise_exception", [](const engine::func_args& args) -> engine::value {
    throw TemplateStop(
        fmt::format("it says: {}", args.count() > 0 ? engine::text_of(args.get_pos(0)).str() : ""));
  });
  add("strftime_now", [now](const engine::func_args& args) -> engine::value {
    return mk_val<engine::value_string>(time_as(args.get_pos(0)->as_string().str(), now));
  });
}

/// The engine's errors have several lines: where it was, the template there, and "Error: " what it was.
std::string one_line(std::string_view error) {
  std::string place;
  if (const size_t at = error.find(" at line "); at != std::string_view::npos && error.starts_with("\n---"))
    place = fmt::format(" (line {})", error.substr(at + 9, error.find(',', at) - at - 9));
  if (const size_t what = error.rfind("\nError: "); what != std::string_view::npos) {
    error.remove_prefix(what + 8);
  } else {
    error = error.substr(0, error.find('\n'));
  }
  return std::string(error) + place;
}

/// The engine does it, too, in a time that grows with the square of the lines.
std::string with_line_feeds(std::string_view jinja) {
  std::string text;
  for (size_t i = 0; i < jinja.size(); ++i) {
    if (jinja[i] != '\r') {
      text += jinja[i];
    } else if (i + 1 == jinja.size() || jinja[i + 1] != '\n') {
      text += '\n';
    }
  }
  return text;
}

std::string run(const std::string& jinja, const TemplateVariables& variables, bool add_generation_prompt) {
  const TemplateLimits limits(variables.work);
  spend_template_work(jinja.size());
  const engine::lexer_result read = engine::lexer().tokenize(with_line_feeds(jinja));
  check_blocks(read.tokens);
  const engine::program program = engine::parse_from_tokens(read);
  engine::context context(jinja);
  for (const auto& [name, text] : variables.texts) context.set_val(name, mk_val<engine::value_string>(text));
  context.set_val("messages", value_of(variables.messages));
  for (const char* none : {"tools", "documents"}) context.set_val(none, mk_val<engine::value_none>());
  context.set_val("add_generation_prompt", mk_val<engine::value_bool>(add_generation_prompt));
  add_functions(context, variables.now);
  const engine::value results = engine::runtime(context).execute(program);
  return engine::runtime::gather_string_parts(results)->as_string().str();
}

}  // namespace

std::string run_template(const std::string& jinja, const TemplateVariables& variables,
                         bool add_generation_prompt, const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("{}: {}", name, printable(std::string_view(why).substr(0, 500))));
  };
  if (jinja.size() > kLongestTemplate)
    refuse(fmt::format("it has {} bytes; a template may have {}", jinja.size(), kLongestTemplate));
  if (const std::string problem = utf8_problem(jinja); !problem.empty()) refuse(problem);
  std::string text;
  try {
    text = run(jinja, variables, add_generation_prompt);
  } catch (const TemplateStop& stop) {
    refuse(stop.what());
  } catch (const std::exception& error) {
    refuse(one_line(error.what()));
  }
  if (text.size() > kLongestPrompt)
    refuse(fmt::format("its text has {} bytes, and may have {}", text.size(), kLongestPrompt));
  if (const std::string problem = utf8_problem(text); !problem.empty()) refuse("of its text " + problem);
  return text;
}

}  // namespace mh
