#include "cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/error_line.h"
#include "cli/flag_names.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/utf8.h"
#include "multihead/io/setting_visitor.h"
#include "multihead/nn/context.h"

namespace mh::cli {
namespace {
bool quiet_wanted = false;
TextLimits limits_of_text;

// A flag for each setting, straight into its value.
class NumberFlags : public SettingVisitor<NumberFlags> {
 public:
  explicit NumberFlags(Verb& verb) : verb_(verb) {}
  template <class T, class R>
  void setting(std::string_view name, T& value, const R& rule, const About& about) {
    const std::string flag = "--" + flag_name(name);
    add_number(verb_, flag, value, rule, about.help);
    rare_flags(verb_, {flag.c_str()});
  }

 private:
  Verb& verb_;
};
}  // namespace

Flag* add_model(Verb& verb, std::string& folder, const std::string& help) {
  return verb.add_option("model,--model", folder, help)->type_name("MODEL");
}

void add_text_flags(Verb& verb, TextFlags& flags) {
  verb.add_option("-i,--input", flags.input, "Read from this file (gzip or not) instead of standard input")
      ->type_name("FILE");
  add_output_flag(verb, "-o,--output", flags.output, "Write to this file instead of standard output");
  add_limit_flags(verb);
}

Flag* add_output_flag(Verb& verb, const std::string& name, std::string& path, const std::string& help) {
  return verb.add_option(name, path, help)
      ->type_name("FILE")
      ->default_str("")
      ->each([](const std::string& given) {
        if (!given.empty()) check_can_write_file(given);
      });
}

void add_limit_flags(Verb& verb) {
  NumberFlags flags(verb);
  limits_of_text.visit(flags);
}

const TextLimits& text_limits() {
  return limits_of_text;
}

std::unique_ptr<LineReader> text_reader(const std::string& path, std::string_view hint) {
  if (!path.empty()) return std::make_unique<LineReader>(path, limits_of_text);
  auto reader = std::make_unique<LineReader>(STDIN_FILENO, name_of(path), limits_of_text);
  if (reader->is_terminal()) remark(fmt::format("reading from the terminal; {}", hint));
  return reader;
}

std::vector<std::string> read_text(const std::string& path) {
  return text_reader(path, "Ctrl-D on an empty line ends the text")->rest();
}

void check_line_for_each(const std::string& file, size_t lines, const LinesRead& input) {
  if (lines == input.count || (lines > input.count && !input.all)) return;
  throw FormatError(fmt::format("{}: expected a line for each line of {}, got {} for {}{}", file, input.name,
                                lines, input.count, input.all ? "" : " and more"));
}

std::string name_of(const std::string& path) {
  return path.empty() ? "standard input" : path;
}

void write_text(const std::string& path, const std::string& text) {
  if (!path.empty()) return write_file_atomically(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw StandardOutputError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
}

void finish_standard_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw StandardOutputError("cannot write to standard output; is its disk full?");
}

std::string counted(int64_t number, std::string_view one, std::string_view many) {
  if (number == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", number, one) : fmt::format("{} {}", number, many);
}

bool quiet() {
  return quiet_wanted;
}
void set_quiet(bool quiet) {
  quiet_wanted = quiet;
}

void to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void remark(std::string_view remark) {
  if (!quiet()) to_stderr(fmt::format("multihead: {}\n", error_line(remark)));
}

void check_utf8(std::string_view given, std::string_view flag) {
  if (const std::string problem = utf8_problem(given); !problem.empty())
    throw UsageError(fmt::format("{}: {}; is the terminal's character set another?", flag, problem));
}

}  // namespace mh::cli
