#include "cli/given_values.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "multihead/base/error.h"

namespace mh::cli {
namespace {

const CLI::Option* find_flag(const CLI::App& verb, const std::string& name) {
  if (!name.starts_with('-') || name == "-" || name == "--") return nullptr;
  if (const CLI::Option* option = verb.get_option_no_throw(name)) return option;
  return verb.get_parent() != nullptr ? find_flag(*verb.get_parent(), name) : nullptr;
}

std::string what_is_expected(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  if (name == "FILE") return "a file";
  if (name == "DIR") return "a folder";
  return name.find('|') != std::string::npos || name == "TEXT" ? "a text" : name;
}

}  // namespace

void check_values_are_given(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* verb = &app;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") return;  // only names follow
    for (const CLI::App* of_verb : verb->get_subcommands([](const CLI::App*) { return true; })) {
      if (of_verb->get_name() != argument) continue;
      verb = of_verb;
      break;
    }
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const std::string name = argument.substr(0, equals);
    const CLI::Option* option = find_flag(*verb, name);
    if (option == nullptr) continue;
    if (option->get_items_expected_max() == 0) {
      if (equals + 1 == argument.size()) throw UsageError(name + " takes no value");
      continue;
    }
    if (equals != std::string::npos) {
      if (equals + 1 == argument.size()) throw UsageError(name + " needs a value");
      continue;
    }
    const bool optional = option->get_items_expected_min() == 0;
    if (i + 1 == arguments.size()) {
      if (optional) return;
      throw UsageError(name + " needs a value");
    }
    const std::string& value = arguments[i + 1];
    if (find_flag(*verb, value.substr(0, value.find('='))) != nullptr) {
      if (optional) continue;
      throw UsageError(fmt::format("{} needs a value, but {} follows", name, value));
    }
    // CLI11 takes an empty value for none.
    if (optional && value.empty())
      throw UsageError(fmt::format("{}: expected {}, got nothing", name, what_is_expected(*option)));
    ++i;
  }
}

void refuse_empty_texts(CLI::App& app) {
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) refuse_empty_texts(*verb);
  for (CLI::Option* option :
       app.get_options([](const CLI::Option* o) { return o->get_items_expected_max() > 0; })) {
    option->check(CLI::Validator(
        [option](const std::string& text) {
          return text.empty() ? fmt::format("expected {}, got nothing", what_is_expected(*option))
                              : std::string();
        },
        ""));
  }
}

}  // namespace mh::cli
