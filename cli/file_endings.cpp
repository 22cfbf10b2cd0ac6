#include "cli/file_endings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "cli/verb.h"

namespace mh::cli {
namespace {

/// Endings that nobody gives to a folder. Other folders may have a point in their names: weights.v2, run.0.1.
constexpr std::string_view kOfFiles[] = {
    ".bin", ".csv", ".gguf", ".gz", ".h5",  ".hdf5", ".json",        ".jsonl", ".mat", ".npy", ".npz",
    ".pdf", ".pkl", ".png",  ".pt", ".pth", ".svg",  ".safetensors", ".tar",   ".tsv", ".txt", ".zip"};

/// ".npz", in small letters.
std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  for (char& c : ending) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return ending;
}

}  // namespace

void expect_ending(Flag* flag, const std::string& ending, const std::string& what) {
  flag->check([=](const std::string& path) {
    const std::string found = ending_of(path);
    if (found.empty() || found == ending) return std::string();
    return fmt::format("expected a name that ends with {}, got {}; it writes {}", ending, path, what);
  });
}

void expect_folder(Flag* flag, const std::string& what, const std::string& besides) {
  flag->check([=](const std::string& path) {
    if (!besides.empty() && path.ends_with(besides)) return std::string();
    if (std::find(std::begin(kOfFiles), std::end(kOfFiles), ending_of(path)) == std::end(kOfFiles))
      return std::string();
    const std::string or_file = besides.empty() ? "" : fmt::format(" or a name that ends with {}", besides);
    return fmt::format("expected a folder{}, got {}; it writes {}", or_file, path, what);
  });
}

}  // namespace mh::cli
