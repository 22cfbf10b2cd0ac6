// The library names settings by their fields (`d_key`); a user of the tool knows them as flags (--d-key).
#pragma once

#include <string>
#include <string_view>

namespace mh::cli {

class Verb;

/// "d_key" -> "d-key": a setting's name on the command line, without the dashes in front.
std::string flag_name(std::string_view field);
/// The same of a setting of the verb, which may have another name for it.
std::string flag_name(std::string_view verb, std::string_view field);

/// The flag of a setting of the verb: "--d-key", or another name where the verb has one.
std::string flag_of(const Verb& verb, std::string_view field);

/// A message of the library with `field` replaced by --flag wherever `verb` has that flag.
std::string with_flags(const Verb& verb, std::string_view message);

}  // namespace mh::cli
