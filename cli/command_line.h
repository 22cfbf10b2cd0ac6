// Reads the words of a command line into the flags of the verb that they name, once, from left to right.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"

namespace mh::cli {

/// Notes which of the tool's verbs is chosen and what is given to which flag. Throws UsageError on a verb or a flag that
/// is not there and on a value that is missing.
void read_words(Verb& tool, const std::vector<std::string>& words);

/// Refuses values that are wrong, flags that do not go together, arguments without a place, and what is missing; then
/// hands the values over. Throws UsageError.
void hand_over(const Verb& verb);

}  // namespace mh::cli
