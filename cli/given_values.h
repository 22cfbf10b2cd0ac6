// What the command line gives as values, looked at once for all verbs.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mh::cli {

/// Throws UsageError on a flag whose value is missing: "--updates=", "-o" at the end, "-o --greedy" (another
/// flag of the verb in the value's place), unless it may be left out. `arguments`: without the program's name.
void check_values_are_given(const CLI::App& app, const std::vector<std::string>& arguments);

/// Makes every option of `app` and of its verbs that takes text refuse an empty one: an empty path or name
/// would quietly mean that the flag was not given.
void refuse_empty_texts(CLI::App& app);

}  // namespace mh::cli
