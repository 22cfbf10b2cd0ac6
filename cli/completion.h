// What `multihead complete WORD ... LAST` answers to the scripts of `multihead completion`.
#pragma once

#include <string>
#include <vector>

namespace mh::cli {

class Verb;

/// Words that may stand in the place of the last of `words`, as far as it is typed: a line each, with what it stands for
/// behind a tab; or ":files", or ":folders".
std::string completions(const Verb& tool, const std::vector<std::string>& words);

}  // namespace mh::cli
