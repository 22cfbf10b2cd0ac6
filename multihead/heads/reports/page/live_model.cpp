#include "multihead/heads/reports/page/live_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
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

/// The texts on which a model with rounded weights is compared: those of the page, and of a model whose vectors alone are compared, which
/// takes no time, up to 100 sentences of the corpus.
HeadsText compared_texts(const ScoredModel& model, const std::vector<PageText>& texts,
                         const PageRunOptions& run) {
  HeadsText compared = corpus_text(texts);
  if (run.corpus == nullptr || !model.folder().gives_vectors_alone()) return compared;
  constexpr size_t kSentences = 100;
  run.corpus->restart();
  const std::vector<std::string> sentences = run.corpus->next().sources;
  compared.sources.insert(compared.sources.end(), sentences.begin(),
                          sentences.begin() + std::min(kSentences, sentences.size()));
  return compared;
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

LiveElements live_elements(const ScoredModel& model, const std::vector<PageText>& texts,
                           const LiveModel& live) {
  const LiveFiles exact = live_files(model.folder());
  RoundingError error;
  LiveFiles rounded;
  if (live.weights != LiveNumbers::kFile) {
    rounded = rounded_files(exact, live.weights);
    error = rounding_error(model, rounded, compared_texts(model, texts, live.run), live.run.languages);
    check_rounding(error, live.weights);
  }
  const LivePageParts library = live_page_parts();
  std::string parts;
  HeadsJson files = HeadsJson::array();
  const auto add = [&](const std::string& name, std::string_view bytes) {
    files.push_back({{"name", name}, {"bytes", bytes.size()}, {"parts", add_parts(parts, bytes)}});
  };
  add("multihead.wasm", library.module);
  const size_t of_library = parts.size();
  for (const auto& [name, bytes] : live.weights == LiveNumbers::kFile ? exact : rounded) add(name, bytes);
  HeadsPageOptions page = live.page;
  page.most_megabytes = 1024;
  const HeadsJson json{{"schema", kLiveSchema},
                       {"name", live.name},
                       {"files", std::move(files)},
                       {"weights",
                        {{"as", name_of(live.weights, kLiveNumbersNames)},
                         {"difference", json_or_null(error.of_logits)},
                         {"cosine", json_or_null(error.cosine)},
                         {"texts", error.texts}}},
                       {"page", settings_json(page)},
                       {"run", settings_json(live.run)}};
  LiveElements elements;
  elements.html = fmt::format(
      "<script id=\"live\" type=\"application/json\">{}</script>\n"
      "<script id=\"worker\" type=\"text/plain\">{}\n{}</script>\n{}",
      in_element(json.dump(-1, ' ', false, HeadsJson::error_handler_t::replace)), library.loader,
      library.worker, parts);
  const size_t held = *rounded_bytes(exact, live.weights);
  for (const auto& [name, numbers] : kLiveNumbersNames) {
    const std::optional<size_t> bytes = rounded_bytes(exact, numbers);
    if (bytes && *bytes < held)
      elements.smaller.emplace_back(name,
                                    elements.html.size() - (parts.size() - of_library) + *bytes / 3 * 4);
  }
  return elements;
}

}  // namespace mh
