// multihead help VERB and multihead version: what --help and --version print, for those who type it as a verb.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"

namespace mh::cli {

void add_help(CLI::App& app) {
  const auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = app.add_subcommand("help", "Help with a verb");
  verb->add_option("verb", *names, "The verb, perhaps with one of its own: data grammar")->type_name("VERB");
  verb->footer("Example:\n  multihead help train");
  verb->callback([names, &app] {
    const CLI::App* at = &app;
    for (const std::string& name : *names) {
      const auto next = at->get_subcommands([&](const CLI::App* other) { return other->get_name() == name; });
      if (next.empty()) throw UsageError(no_verb(*at, name));
      at = next.front();
    }
    std::vector<std::string> arguments(names->rbegin(), names->rend());  // CLI11 reads them from the back
    arguments.insert(arguments.begin(), "--help");
    app.clear();
    app.parse(std::move(arguments));
  });
}

void add_version(CLI::App& app) {
  app.add_subcommand("version", "The version")->callback([&app] {
    throw CLI::CallForVersion(app.version(), 0);
  });
}

}  // namespace mh::cli
