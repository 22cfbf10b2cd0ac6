// Words of a command line that have no place in it: what was most likely meant.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"

namespace mh::cli {

/// "translte is no verb; did you mean translate?", of the verbs of `verb`; `given` is empty when there was none.
std::string no_verb(const Verb& verb, const std::string& given);
/// "--beam-siez is no flag of multihead translate; did you mean --beam-size?"
std::string no_flag(const Verb& verb, const std::string& given);
/// A flag or an argument that was given to the parent of `verb`.
std::string flag_of_parent(const Verb& verb, const Flag& flag);
/// "--out is required; see multihead convert --help"
std::string missing(const Verb& verb, const Flag& flag);
/// "v.en is one argument too many; did you mean -i v.en?" `strays`: all of them, in order; at least one.
std::string too_many_arguments(const Verb& verb, const std::vector<std::string>& strays);

}  // namespace mh::cli
