// What the verbs share: where text comes from and goes to, progress on stderr, numbers of threads.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mh::cli {

/// -i/--input, -o/--output: files, or standard input and output when empty.
struct TextFlags {
  std::string input;
  std::string output;
};
void add_text_flags(CLI::App& verb, TextFlags& flags);

/// The lines of `path` (gzip or not), or of standard input when it is empty. Throws on what is not UTF-8
/// (with the line number).
std::vector<std::string> read_text(const std::string& path);
/// Writes all at once: to the file as a whole, or to standard output when `path` is empty. Throws FileError.
void write_text(const std::string& path, const std::string& text);

/// --threads, --quiet: added once for the whole tool (main.cpp); the verbs ask here.
bool quiet();
void set_quiet(bool quiet);

}  // namespace mh::cli
