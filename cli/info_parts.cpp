#include "cli/info_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "multihead/analysis/heat_map.h"
#include "multihead/io/config.h"

namespace mh::cli {

using nlohmann::ordered_json;

namespace {

struct FileSize {
  std::string name;
  uint64_t bytes;
};

std::vector<FileSize> files_of(const std::filesystem::path& folder) {
  if (std::filesystem::is_regular_file(folder))  // a .gguf file
    return {{folder.filename().string(), std::filesystem::file_size(folder)}};
  std::vector<FileSize> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back({entry.path().filename().string(), entry.file_size()});
  }
  std::sort(files.begin(), files.end(), [](const FileSize& a, const FileSize& b) { return a.name < b.name; });
  return files;
}

}  // namespace

ordered_json unusual_heads(const HeadGeometry& geometry) {
  const auto usual = ordered_json::parse(to_json_line(HeadGeometry()));
  const auto found = ordered_json::parse(to_json_line(geometry));
  ordered_json fields = ordered_json::object();
  for (const auto& [name, value] : found.items()) {
    if (value != usual[name]) fields[name] = value;
  }
  return fields;
}

double rounded(float rate) {
  return std::round(rate * 1e6) / 1e6;
}

void describe_parts(const ModelFolder& folder, ordered_json& json) {
  json["attentions"] = ordered_json::array();
  for (const auto& [name, heads] : folder.model->attentions()) {
    json["attentions"].push_back({{"name", name}, {"heads", heads}});
  }
  json["files"] = ordered_json::array();
  for (const FileSize& file : files_of(folder.path)) {
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
}

std::string layers_text(HeadGeometry geometry, int32_t d_model, int32_t layers, int32_t heads, int32_t d_ff) {
  geometry.heads = heads;
  const HeadGeometry g = completed(geometry, d_model, "heads");
  const std::string size = g.d_key == g.d_value
                               ? fmt::format("size {}", g.d_key)
                               : fmt::format("keys of size {}, values of size {}", g.d_key, g.d_value);
  return fmt::format("{} of {} ({}), feed-forward {}", counted(layers, "layer"), counted(heads, "head"), size,
                     d_ff);
}

std::string info_row(std::string_view what, const std::string& value) {
  return fmt::format("{:<14}{}\n", what, printable_line(value));
}

std::string positions_text(Positions positions, int32_t longest) {
  return fmt::format("{}, up to {} tokens",
                     positions == Positions::kSinusoidal ? "sinusoids" : name_of(positions, kPositionNames),
                     longest);
}

std::string parts_table(const ModelFolder& folder) {
  std::string text = "attentions    (name a head as encoder.0.self_attention.1)\n";
  for (const auto& [name, heads] : folder.model->attentions()) {
    text +=
        fmt::format("  {:<28}{}\n", name, heads == 1 ? "head 0" : fmt::format("heads 0 to {}", heads - 1));
  }
  text += "files\n";
  const std::vector<FileSize> files = files_of(folder.path);
  int longest = 28;
  for (const FileSize& file : files)
    longest = std::max(longest, display_width(printable_line(file.name)) + 1);
  for (const FileSize& file : files) {
    const std::string name = printable_line(file.name);
    text += fmt::format("  {}{}{:>14} {}\n", name,
                        std::string(static_cast<size_t>(longest - display_width(name)), ' '),
                        grouped(file.bytes), file.bytes == 1 ? "byte" : "bytes");
  }
  return text;
}

}  // namespace mh::cli
