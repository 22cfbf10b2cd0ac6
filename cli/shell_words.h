// Commands that a user can paste into a shell.
#pragma once

#include <string>
#include <string_view>

namespace mh::cli {

/// `word` as one word of a shell: in single quotes when it holds what a shell would take apart.
std::string shell_word(std::string_view word);

/// What to type to run this program again: "multihead" when the shell finds this very file under that name,
/// else its path, from the current folder when that is shorter.
std::string this_program();

}  // namespace mh::cli
