// multihead completion SHELL: prints a script that completes verbs, flags and their values.
#include "cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/common.h"
#include "cli/help_format.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "multihead/models/transformer_presets.h"
#include "multihead/nn/head_geometry.h"

namespace mh::cli {
namespace {

enum class Shell { kBash, kZsh, kFish };

const CLI::App& whole_tool(const CLI::App& verb) {
  return verb.get_parent() == nullptr ? verb : whole_tool(*verb.get_parent());
}

// The names that a value of this kind may have; see name_values().
std::vector<std::string> value_words(const CLI::App& app, const std::string& value_name) {
  std::vector<std::string> words;
  if (value_name == "GEOMETRY") {
    for (const GeometryName& geometry : geometry_names()) words.emplace_back(geometry.name);
  } else if (value_name == "PRESET") {
    for (const TransformerPreset& preset : transformer_presets()) words.emplace_back(preset.name);
  } else if (value_name == "STUDY") {
    words = study_names();
  } else if (value_name == "VERB") {
    words = listed_names(whole_tool(app));
  } else if (value_name.find('|') != std::string::npos) {
    for (const std::string& word : CLI::detail::split(value_name, '|')) words.push_back(word);
  }
  return words;
}

CompletedValue value_of(const CLI::App& app, const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  const std::string name = option.get_type_name();
  if (name.find("FILE") != std::string::npos)
    return {.kind = CompletedKind::kFiles, .optional = option.get_items_expected_min() == 0};
  if (name == "DIR") return {.kind = CompletedKind::kFolders};
  std::vector<std::string> words = value_words(app, name);
  return {.kind = words.empty() ? CompletedKind::kFree : CompletedKind::kWords, .words = std::move(words)};
}

CompletedFlag completed_flag(const CLI::App& app, const CLI::Option& option) {
  CompletedFlag flag{.names = {},
                     .about = option.get_description(),
                     .value_name = value_name(option),
                     .value = value_of(app, option),
                     .again = option.get_expected_max() > 1};
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  return flag;
}

// The flags of the verb, and those that every verb takes (--version stands alone).
std::vector<CompletedFlag> completed_flags(const CLI::App& app) {
  std::vector<CompletedFlag> flags;
  for (const CLI::App* of = &app; of != nullptr; of = of->get_parent()) {
    for (const CLI::Option* option :
         of->get_options([](const CLI::Option* o) { return o->nonpositional(); })) {
      const bool inherited = of != &app;
      const bool own_too = inherited && app.get_option_no_throw(option->get_name()) != nullptr;
      if (!own_too && !(inherited && option->check_lname("version")))
        flags.push_back(completed_flag(app, *option));
    }
  }
  return flags;
}

// "data", "grammar" -> "data grammar".
std::string path_of(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + " " + name;
}

void add_verb(std::vector<CompletedVerb>& verbs, const CLI::App& app, const std::string& path) {
  CompletedVerb verb{.path = path,
                     .about = app.get_description(),
                     .flags = completed_flags(app),
                     .verbs = listed_names(app),
                     .argument = {}};
  for (const CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->get_positional(); }))
    verb.argument = value_of(app, *option);
  verbs.push_back(std::move(verb));
  for (const CLI::App* of_verb : listed_verbs(app))
    add_verb(verbs, *of_verb, path_of(path, of_verb->get_name()));
}

}  // namespace

std::vector<CompletedVerb> completed_verbs(const CLI::App& app) {
  std::vector<CompletedVerb> verbs;
  add_verb(verbs, app, "");
  return verbs;
}

const CompletedVerb& next_verb(const std::vector<CompletedVerb>& verbs, const CompletedVerb& verb,
                               const std::string& name) {
  return *std::find_if(verbs.begin(), verbs.end(),
                       [path = path_of(verb.path, name)](const auto& each) { return each.path == path; });
}

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<Shell>(Shell::kBash);
  CLI::App* verb =
      app.add_subcommand("completion", "Print a script that completes verbs and flags in your shell");
  add_choice(*verb, "shell", *shell, {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}},
             "The shell that reads it")
      ->default_str("")
      ->required();
  verb->footer(
      "Examples:\n"
      "  source <(multihead completion bash)\n"
      "  multihead completion fish > ~/.config/fish/completions/multihead.fish");
  verb->callback([shell, &app] {
    const std::vector<CompletedVerb> verbs = completed_verbs(app);
    write_text("", *shell == Shell::kBash  ? bash_completion(verbs)
                   : *shell == Shell::kZsh ? zsh_completion(verbs)
                                           : fish_completion(verbs));
  });
}

}  // namespace mh::cli
