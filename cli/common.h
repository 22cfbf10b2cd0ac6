// What the verbs share: where text comes from and goes to, progress on stderr, numbers of threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mh::cli {

/// The folder of the model that the verb reads: by position (multihead info model) or as --model DIR.
CLI::Option* add_model(CLI::App& verb, std::string& folder, const std::string& help = "The model folder");

/// -i/--input, -o/--output: files, or standard input and output when empty.
struct TextFlags {
  std::string input;
  std::string output;
};
void add_text_flags(CLI::App& verb, TextFlags& flags);

/// The lines of `path` (gzip or not), or of standard input when it is empty. Throws on what is not UTF-8
/// (with the line number).
std::vector<std::string> read_text(const std::string& path);
/// What errors call it: the path, or "standard input" when it is empty.
std::string name_of(const std::string& path);
/// Writes all at once: to the file as a whole, or to standard output when `path` is empty. Throws FileError.
void write_text(const std::string& path, const std::string& text);

/// 1234567 -> "1,234,567".
std::string grouped(uint64_t number);

/// --threads, --quiet: added once for the whole tool (main.cpp); the verbs ask here.
bool quiet();
void set_quiet(bool quiet);

/// Writes to standard error. When that cannot be (it is closed, its disk is full) the work goes on without.
void to_stderr(std::string_view text);
/// "multihead: REMARK" on standard error, unless --quiet was given.
void remark(std::string_view remark);
/// Throws UsageError when what was given for `flag` is not UTF-8.
void check_utf8(std::string_view given, std::string_view flag);

/// The work was interrupted by this signal and has saved what it had.
class StoppedBySignal : public Interrupted {
 public:
  StoppedBySignal(const std::string& what, int signal) : Interrupted(what), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

}  // namespace mh::cli
