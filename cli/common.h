// What the verbs share: where text comes from and goes to, progress on stderr, numbers of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/io/lines.h"

namespace mh::cli {

struct Flag;
class Verb;

/// The folder of the model that the verb reads: by position (multihead info model) or as --model MODEL.
Flag* add_model(Verb& verb, std::string& folder, const std::string& help = "The model folder");

/// -i/--input, -o/--output: files, or standard input and output when empty.
struct TextFlags {
  std::string input;
  std::string output;
};
void add_text_flags(Verb& verb, TextFlags& flags);
/// --max-line-characters, --max-unpacked: what read_text() and text_reader() keep to. add_text_flags() adds
/// them too.
void add_limit_flags(Verb& verb);
/// What these flags ask for.
const TextLimits& text_limits();
/// A file for results: one that could not be written is refused when the flags are read, before any work.
Flag* add_output_flag(Verb& verb, const std::string& name, std::string& path, const std::string& help);

/// The lines of `path` (gzip or not), or of standard input when it is empty. Throws on what is not UTF-8
/// (with the line number) and on what is beyond the limits. A remark says when a terminal is waited for.
std::vector<std::string> read_text(const std::string& path);
/// The same, to be read as it comes; `hint` ends the remark, e.g. "a line is translated at once".
std::unique_ptr<LineReader> text_reader(const std::string& path, std::string_view hint);
/// Lines of an input that were read; all: no more come.
struct LinesRead {
  std::string name;
  size_t count = 0;
  bool all = true;
};
/// Throws FormatError unless `file`, which has so many lines, has a line for each line of the input.
void check_line_for_each(const std::string& file, size_t lines, const LinesRead& input);
/// What errors call it: the path, or "standard input" when it is empty.
std::string name_of(const std::string& path);
/// Writes all at once: to the file as a whole, or to standard output when `path` is empty. Throws FileError.
void write_text(const std::string& path, const std::string& text);

/// Throws StandardOutputError when something that was printed could not be written.
void finish_standard_output();

/// "1 line", "2 lines"; `many` where an s does not do: counted(2, "query", "queries").
std::string counted(int64_t number, std::string_view one, std::string_view many = {});

/// --threads, --quiet: added once for the whole tool (app.cpp); the verbs ask here.
bool quiet();
void set_quiet(bool quiet);

/// Writes to standard error. When that cannot be (it is closed, its disk is full) the work goes on without.
void to_stderr(std::string_view text);
/// "multihead: REMARK" on standard error, unless --quiet was given.
void remark(std::string_view remark);
/// Throws UsageError when what was given for `flag` is not UTF-8.
void check_utf8(std::string_view given, std::string_view flag);

/// Standard output takes nothing more: its disk is full, or it is closed.
class StandardOutputError : public FileError {
 public:
  using FileError::FileError;
};

/// The work was interrupted by this signal and has saved what it had.
class StoppedBySignal : public Interrupted {
 public:
  StoppedBySignal(const std::string& what, int signal) : Interrupted(what), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

}  // namespace mh::cli
