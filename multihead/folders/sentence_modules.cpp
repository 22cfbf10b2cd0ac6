#include "multihead/folders/sentence_modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "multihead/base/file.h"
#include "multihead/folders/json_file.h"
#include "multihead/folders/known_keys.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModules = "modules.json";
constexpr std::string_view kKnownModules[] = {"Transformer", "Pooling", "Dense", "Normalize", "Dropout"};

fs::path folder_of(const JsonNode& node, const fs::path& root) {
  const std::string path = node.text("path", "");
  const fs::path inside(path);
  if (inside.is_absolute() || path.find('\0') != std::string::npos ||
      std::any_of(inside.begin(), inside.end(), [](const fs::path& part) { return part == ".."; })) {
    node.fail(fmt::format("expected a folder in this one, got {}", in_quotes(path)));
  }
  return path.empty() ? root : root / inside;
}

SentenceModule module_of(const JsonNode& node, const fs::path& root) {
  const std::string type = node.at("type").text();
  const std::string_view name = std::string_view(type).substr(type.rfind('.') + 1);
  if (!type.starts_with("sentence_transformers.") ||
      std::find(std::begin(kKnownModules), std::end(kKnownModules), name) == std::end(kKnownModules)) {
    node.fail(fmt::format("the module {} is not supported; only {} of sentence_transformers are",
                          in_quotes(type, kWholeName), fmt::join(kKnownModules, ", ")));
  }
  return {.type = std::string(name), .folder = folder_of(node, root)};
}

}  // namespace

bool has_sentence_modules(const fs::path& folder) {
  return is_there(folder / kModules);
}

std::vector<SentenceModule> read_sentence_modules(const fs::path& folder, std::vector<std::string>* remarks) {
  const JsonFile file(folder / kModules);
  std::vector<SentenceModule> modules;
  // kwargs: which arguments of encode() the module may get, which none of these looks at.
  const KnownKeys keys{.obeyed = {"type", "path"},
                       .rules = {{.key = "idx"}, {.key = "name"}, {.key = "kwargs"}}};
  for (const JsonNode& node : file.root().items()) {
    modules.push_back(module_of(node, folder));
    if (remarks == nullptr) continue;
    const KeyFindings found = keys.look_at(node.value(), (folder / kModules).string());
    if (std::string line = found.remark(); !line.empty()) remarks->push_back(std::move(line));
  }
  const auto is = [&](size_t i, std::string_view type) {
    return i < modules.size() && modules[i].type == type;
  };
  if (!is(0, "Transformer") || !is(1, "Pooling"))
    file.root().fail("expected a Transformer and then a Pooling");
  for (size_t i = 2; i < modules.size(); ++i) {
    if (is(i, "Transformer") || is(i, "Pooling"))
      file.root().item(i).fail(fmt::format("a second {} is not supported", modules[i].type));
  }
  return modules;
}

fs::path transformer_folder(const fs::path& folder) {
  if (!has_sentence_modules(folder)) return folder;
  const JsonFile file(folder / kModules);
  if (file.root().size() == 0) file.root().fail("expected a Transformer and then a Pooling");
  return folder_of(file.root().item(0), folder);
}

}  // namespace mh
