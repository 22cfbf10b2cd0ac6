// The whole command line: every verb, and what they share.
#pragma once

#include <CLI/CLI.hpp>

namespace mh::cli {

/// Adds the verbs and the flags that all of them take. `app` must not be moved afterwards.
void add_all(CLI::App& app);

}  // namespace mh::cli
