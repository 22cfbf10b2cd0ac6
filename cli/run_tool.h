// The tool, for whoever has arguments: main(), and the Python package.
#pragma once

namespace mh::cli {

/// Parses, calls the verb, turns errors into one line; returns the exit status. argv: the program's name, its arguments, null.
int run_tool(int argc, char** argv);

}  // namespace mh::cli
