// multihead help VERB and multihead version: what --help and --version print, for those who type it as a verb.
#include <memory>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/help_text.h"
#include "cli/mistyped.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"

namespace mh::cli {

void add_help(Verb& tool) {
  const auto names = std::make_shared<std::vector<std::string>>();
  Verb* verb = tool.add_subcommand("help", "Help with a verb");
  verb->add_option("verb", *names, "The verb, perhaps with one of its own: data grammar")->type_name("VERB");
  verb->footer("Example:\n  multihead help train");
  verb->callback([names, &tool] {
    const Verb* at = &tool;
    for (const std::string& name : *names) {
      const Verb* const next = at->verb(name);
      if (next == nullptr) throw UsageError(no_verb(*at, name));
      at = next;
    }
    write_text("", help_text(*at, false));
  });
}

void add_version(Verb& tool) {
  tool.add_subcommand("version", "The version")->callback([] { write_text("", version_line()); });
}

}  // namespace mh::cli
