#include "multihead/heads/reports/page/live_model.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/gguf_split.h"
#include "multihead/folders/sentence_modules.h"
#include "multihead/folders/tensor_files.h"
#include "multihead/heads/reports/json_parts.h"
#include "multihead/heads/reports/page/page_numbers.h"
#include "multihead/heads/reports/page/page_template.h"
#include "multihead/io/config.h"
#include "multihead/text/base64.h"

namespace mh {
namespace {

/// Of viewer/src/live/payload.ts.
constexpr int kLiveSchema = 1;
/// Base64 of one element, a multiple of four: so large that there are few, so small that a browser passes each on within a frame.
constexpr size_t kPartBytes = 4 << 20;

LiveFiles gguf_file(const std::filesystem::path& path) {
  if (gguf_files(path).size() > 1)
    throw UsageError(fmt::format(
        "{} is cut into several files, and a live page holds one; join them first (llama-gguf-split --merge)",
        path.string()));
  return {{path.filename().string(), read_file(path)}};
}

/// Adds a file's elements, and returns how many they are.
size_t add_parts(std::string& elements, std::string_view bytes) {
  const std::string base64 = to_base64(deflated(bytes));
  size_t parts = 0;
  for (size_t begin = 0; begin == 0 || begin < base64.size(); begin += kPartBytes, ++parts) {
    elements += fmt::format("<script class=\"live\" type=\"text/plain\">{}</script>\n",
                            std::string_view(base64).substr(begin, kPartBytes));
  }
  return parts;
}

HeadsJson settings_json(const auto& settings) {
  return HeadsJson::parse(to_json(settings));
}

}  // namespace

LiveFiles live_files(const ModelFolder& folder) {
  if (is_gguf(folder.path)) return gguf_file(folder.path);
  const FolderSource& source = *folder.source;
  if (source.has(kAdapterConfigFile))
    throw UsageError(fmt::format(
        "{} has an adapter beside its weights, which a live page does not hold; save them as one model first "
        "(multihead convert, or merge_and_unload() of peft)",
        folder.path.string()));
  if (!folder.shipped && !has_sentence_modules(folder.path) &&
      has_sentence_modules(folder.path.parent_path()))
    throw UsageError(fmt::format(
        "the Transformer of {} lies in a folder of its own, {}, and a live page holds one folder; move its "
        "files into the folder above, and say so in modules.json",
        folder.path.parent_path().string(), folder.path.filename().string()));
  LiveFiles files;
  for (const std::string& name : source.small_files()) files[name] = source.read(name);
  for (const std::string& name : tensor_file_names(source)) files[name] = source.read(name);
  return files;
}

std::string live_elements(const LiveModel& model) {
  const LivePageParts library = live_page_parts();
  std::string parts;
  HeadsJson files = HeadsJson::array();
  const auto add = [&](const std::string& name, std::string_view bytes) {
    files.push_back({{"name", name}, {"bytes", bytes.size()}, {"parts", add_parts(parts, bytes)}});
  };
  add("multihead.wasm", library.module);
  for (const auto& [name, bytes] : model.files) add(name, bytes);
  HeadsPageOptions page = model.page;
  page.most_megabytes = 1024;
  const HeadsJson json{
      {"schema", kLiveSchema},
      {"name", model.name},
      {"files", std::move(files)},
      {"weights", {{"as", "those of the file"}, {"difference", nullptr}, {"cosine", nullptr}}},
      {"page", settings_json(page)},
      {"run", settings_json(model.run)}};
  return fmt::format(
      "<script id=\"live\" type=\"application/json\">{}</script>\n"
      "<script id=\"worker\" type=\"text/plain\">{}\n{}</script>\n{}",
      in_element(json.dump(-1, ' ', false, HeadsJson::error_handler_t::replace)), library.loader,
      library.worker, parts);
}

}  // namespace mh
