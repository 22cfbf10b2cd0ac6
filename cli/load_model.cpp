#include "cli/load_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "cli/common.h"
#include "cli/options.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/models/use_precision.h"

namespace mh::cli {

Flag* add_model(Verb& verb, ModelFlags& model, const std::string& help) {
  Flag* const folder = add_model(verb, model.path, help);
  verb.add_option("--precision",
                  "How exactly products with weights are computed: near rounds their inputs to 16 bits, fast "
                  "to 8, which takes less time; fast:KERNEL names what computes them, too")
      ->type_name(names_listed(kPrecisionNames))
      ->default_str(precision_name(model.precision))
      ->check([](const std::string& text) {
        if (precision_named(text)) return std::string();
        return fmt::format("expected {}, got {}", precisions_like(text), text.empty() ? "nothing" : text);
      })
      ->each([&model](const std::string& text) { model.precision = *precision_named(text); });
  return folder;
}

ModelFolder load_model(const std::string& path) {
  ModelFolder folder = load_model_folder(path);
  if (const std::string line = folder.remark(); !line.empty()) remark(line);
  return folder;
}

ModelFolder load_model(const ModelFlags& model) {
  ModelFolder folder = load_model(model.path);
  use_precision(*folder.model, model.precision);
  return folder;
}

ScoredModel load_scored(const ModelFlags& model) {
  ScoredModel scored = load_scored_model(model.path);
  for (const std::string& line : scored.remarks()) remark(line);
  use_precision(*scored.folder().model, model.precision);
  return scored;
}

SentenceModel load_sentences(const ModelFlags& model) {
  SentenceModel sentences = load_sentence_model(model.path);
  use_precision(*sentences.folder.model, model.precision);
  return sentences;
}

namespace {

constexpr const char* kTranslator = "a translator (made by multihead train, Marian's, BART's or T5's)";

[[noreturn]] void refuse_kind(const ModelFolder& folder, const std::string& path, std::string_view verb,
                              const std::string& takes, std::string_view instead) {
  throw UsageError(fmt::format("{} holds a {} model, but {} takes the folder of {}; {}", path,
                               folder.model_type, verb, takes, instead));
}

}  // namespace

ModelFolder load_translator(const std::string& path, std::string_view verb, std::string_view instead) {
  ModelFolder folder = load_model(path);
  if (folder.model->kind() == ModelKind::kTranslator) return folder;
  refuse_kind(folder, path, verb, kTranslator, instead);
}

ModelFolder load_translator_or_causal(const std::string& path, std::string_view verb,
                                      std::string_view instead) {
  ModelFolder folder = load_model(path);
  if (folder.model->kind() == ModelKind::kTranslator || folder.model->kind() == ModelKind::kCausal)
    return folder;
  refuse_kind(folder, path, verb, std::string(kTranslator) + " or a causal model", instead);
}

void check_new_folder(const std::string& out) {
  std::error_code code;
  if (std::filesystem::exists(out, code))
    throw UsageError(fmt::format("--out {} exists; name a new folder, so that no model is lost", out));
  check_can_write_folder(out);
}

}  // namespace mh::cli
