// The library names settings by their fields (`d_key`); a user of the tool knows them as flags (--d-key).
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace mh::cli {

/// "d_key" -> "d-key": a setting's name on the command line, without the dashes in front.
std::string flag_name(std::string_view field);

/// The flag of a setting of the verb: "--d-key", or another name where the verb has one.
std::string flag_of(const CLI::App& verb, std::string_view field);

/// A message of the library with `field` replaced by --flag wherever `verb` has that flag.
std::string with_flags(const CLI::App& verb, std::string_view message);

/// The verb that was chosen, of `app`'s verbs or theirs; `app` itself when none was.
const CLI::App& chosen_verb(const CLI::App& app);

}  // namespace mh::cli
