#include "cli/info_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/info_products.h"
#include "cli/stored_weights.h"
#include "multihead/base/terminal_text.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/io/config.h"

namespace mh::cli {

using nlohmann::ordered_json;

namespace {

struct FileSize {
  std::string name;
  uint64_t bytes;
};

std::vector<FileSize> files_of(const ModelFolder& folder) {
  if (std::filesystem::is_regular_file(folder.path) && !folder.shipped)  // a .gguf file
    return {{folder.path.filename().string(), std::filesystem::file_size(folder.path)}};
  std::vector<FileSize> files;
  if (folder.shipped) {
    for (const std::string& name : folder.source->small_files())
      files.push_back({name, folder.source->read(name).size()});
    files.push_back({kWeightsFile, folder.source->read(kWeightsFile).size()});
  } else {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
      if (entry.is_regular_file()) files.push_back({entry.path().filename().string(), entry.file_size()});
    }
  }
  std::sort(files.begin(), files.end(), [](const FileSize& a, const FileSize& b) { return a.name < b.name; });
  return files;
}

/// "weights       Q4_1 66.4 MB, Q8_0 30.1 MB", on as many lines of 80 columns as it takes.
std::string weights_rows(const ModelFolder& folder) {
  const std::vector<StoredAlike> all = stored_weights(folder);
  std::string text, line = fmt::format("{:<13}", "weights");
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string one =
        fmt::format(" {} {}{}", all[i].type, bytes_text(all[i].bytes), i + 1 < all.size() ? "," : "");
    if (line.size() + one.size() > 80) text += std::exchange(line, std::string(13, ' ')) + "\n";
    line += one;
  }
  return text + line + "\n";
}

/// The different numbers of a stack's layers, smallest first.
struct Sizes {
  std::set<int> heads, keys, values, d_ff;
};

Sizes sizes_of(const StackConfig& stack) {
  Sizes sizes;
  const auto add = [&](const HeadGeometry& described) {
    const HeadGeometry g = completed(described, stack.d_model, "heads");
    sizes.heads.insert(g.heads), sizes.keys.insert(g.d_key), sizes.values.insert(g.d_value);
  };
  for (const LayerConfig& layer : stack.layers) {
    add(layer.self_attention);
    if (stack.cross_attention) add(layer.cross_attention);
    sizes.d_ff.insert(layer.feed_forward.d_ff);
  }
  return sizes;
}

/// "3", "3 or 4", "1 to 7".
std::string numbers_text(const std::set<int>& numbers) {
  if (numbers.size() == 1) return std::to_string(*numbers.begin());
  return fmt::format("{} {} {}", *numbers.begin(), numbers.size() == 2 ? "or" : "to", *numbers.rbegin());
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
  json["weights"] = stored_weights_json(stored_weights(folder));
  describe_products(*folder.model, json);
  json["attentions"] = ordered_json::array();
  for (const auto& [name, heads, place] : folder.model->attentions()) {
    json["attentions"].push_back({{"name", name}, {"heads", heads}});
  }
  json["files"] = ordered_json::array();
  for (const FileSize& file : files_of(folder)) {
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
}

std::string layers_text(const StackConfig& stack) {
  const Sizes sizes = sizes_of(stack);
  const std::string size = sizes.keys == sizes.values
                               ? fmt::format("size {}", numbers_text(sizes.keys))
                               : fmt::format("keys of size {}, values of size {}", numbers_text(sizes.keys),
                                             numbers_text(sizes.values));
  return fmt::format("{} of {} {} ({}), feed-forward {}", counted(std::ssize(stack.layers), "layer"),
                     numbers_text(sizes.heads), *sizes.heads.rbegin() == 1 ? "head" : "heads", size,
                     numbers_text(sizes.d_ff));
}

ordered_json heads_of_each(const StackConfig& stack) {
  const std::set<int> heads = sizes_of(stack).heads;
  return heads.size() == 1 ? ordered_json(*heads.begin()) : ordered_json();
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
  const auto attentions = folder.model->attentions();
  std::string text = weights_rows(folder) + products_table(*folder.model);
  text += fmt::format("attentions    (name a head as {}.{})\n", attentions.front().name,
                      attentions.front().heads - 1);
  for (const auto& [name, heads, place] : attentions) {
    text +=
        fmt::format("  {:<28}{}\n", name, heads == 1 ? "head 0" : fmt::format("heads 0 to {}", heads - 1));
  }
  text += "files\n";
  const std::vector<FileSize> files = files_of(folder);
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
