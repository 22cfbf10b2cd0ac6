// Runs a Python program for `multihead check`.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mh::cli {

/// Runs the program, whose text is `script`, with these arguments; `scratch`: where its file and its standard error are kept. What
/// it prints on standard output is lost. Throws Error when `python` cannot be run, and with the last line of its standard error
/// when it fails.
void run_python(const std::string& python, std::string_view script, const std::vector<std::string>& arguments,
                const std::filesystem::path& scratch);

}  // namespace mh::cli
