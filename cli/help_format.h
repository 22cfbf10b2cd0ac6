// --help in 80 columns: groups of flags, the common ones; --help-all shows every flag.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mh::cli {

/// The group of the flags that every verb takes.
inline constexpr const char* kEveryVerb = "Every verb";

/// Makes `app`, and the verbs that are added to it afterwards, print help in this form.
void use_help_format(CLI::App& app);

/// Puts these flags under this title; the groups stand in the order in which their first flags were added.
void group_flags(CLI::App& verb, const char* title, std::initializer_list<const char*> flags);
/// What stands for the value of these flags: FILE, DIR, HEAD, ...
void name_values(CLI::App& verb, const char* name, std::initializer_list<const char*> flags);
/// Leaves these flags, or all but these, to --help-all.
void rare_flags(CLI::App& verb, std::initializer_list<const char*> flags);
void common_flags(CLI::App& verb, std::initializer_list<const char*> flags);

/// The verbs that help lists, of the tool or of a verb; and their names.
std::vector<const CLI::App*> listed_verbs(const CLI::App& app);
std::vector<std::string> listed_names(const CLI::App& app);
/// "multihead data grammar": what one types for this verb.
std::string typed_name(const CLI::App& verb);
/// "FILE...", "a|b"; empty for a flag without a value.
std::string value_name(const CLI::Option& option);

}  // namespace mh::cli
