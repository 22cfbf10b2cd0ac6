#include "cli/common.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/lines.h"

namespace mh::cli {
namespace {
bool quiet_wanted = false;
}

void add_text_flags(CLI::App& verb, TextFlags& flags) {
  verb.add_option("-i,--input", flags.input, "Read from this file (gzip or not) instead of standard input");
  verb.add_option("-o,--output", flags.output, "Write to this file instead of standard output");
}

std::vector<std::string> read_text(const std::string& path) {
  if (!path.empty()) return read_lines(path);
  std::string bytes((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  return split_lines(std::move(bytes), "standard input");
}

void write_text(const std::string& path, const std::string& text) {
  if (!path.empty()) return write_file_atomically(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw FileError("cannot write to standard output; is the disk full or the pipe closed?");
  }
}

bool quiet() {
  return quiet_wanted;
}
void set_quiet(bool quiet) {
  quiet_wanted = quiet;
}

}  // namespace mh::cli
