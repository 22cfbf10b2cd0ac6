#include "multihead/folders/sentence_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/pool_rows.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/finite.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/json_file.h"
#include "multihead/folders/sentence_dense.h"
#include "multihead/folders/sentence_modules.h"
#include "multihead/folders/sentence_pooling.h"
#include "multihead/folders/sentence_settings.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/nn/context.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

Pooling pooling_of(const JsonNode& node) {
  if (const auto pooling = value_named(node.text(), kPoolingNames)) return *pooling;
  node.fail(
      fmt::format("expected one of {}, got {}", names_listed(kPoolingNames, ", "), in_quotes(node.text())));
}

/// pooling_mode is one name or a list; before version 6 each mode had a flag.
std::vector<Pooling> poolings_of(const JsonNode& config) {
  if (const auto mode = config.find("pooling_mode")) {
    if (!mode->value().is_array()) return {pooling_of(*mode)};
    std::vector<Pooling> modes;
    for (const JsonNode& item : mode->items()) modes.push_back(pooling_of(item));
    constexpr size_t kMostModes = 6;
    if (modes.empty() || modes.size() > kMostModes)
      mode->fail(fmt::format("expected 1 to {} modes, got {}", kMostModes, modes.size()));
    return modes;
  }
  constexpr std::pair<const char*, Pooling> kFlags[] = {
      {"pooling_mode_cls_token", Pooling::kFirst},
      {"pooling_mode_max_tokens", Pooling::kMax},
      {"pooling_mode_mean_tokens", Pooling::kMean},
      {"pooling_mode_mean_sqrt_len_tokens", Pooling::kMeanSqrtLength},
      {"pooling_mode_weightedmean_tokens", Pooling::kWeightedMean},
      {"pooling_mode_lasttoken", Pooling::kLast}};
  std::vector<Pooling> modes;
  for (const auto& [flag, pooling] : kFlags) {
    if (config.flag(flag, false)) modes.push_back(pooling);
  }
  if (modes.empty()) modes.push_back(Pooling::kMean);
  return modes;
}

void read_pooling(const JsonFile& file, SentenceModel& model) {
  const JsonNode config = file.root();
  remark_unknown_keys(file,
                      {.obeyed = {"embedding_dimension", "word_embedding_dimension", "include_prompt",
                                  "pooling_mode", "pooling_mode_cls_token", "pooling_mode_max_tokens",
                                  "pooling_mode_mean_tokens", "pooling_mode_mean_sqrt_len_tokens",
                                  "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"}},
                      model.remarks);
  for (const char* key : {"embedding_dimension", "word_embedding_dimension"}) {
    const auto given = config.find(key);
    if (given && given->number() != model.dimension) {
      given->fail(fmt::format("expected {}, the numbers of a state of the model, got {}", model.dimension,
                              given->number()));
    }
  }
  model.pools_prompt = config.flag("include_prompt", true);
  model.unpooled = text_prompt(model, model.prompt).unpooled;
  model.poolings = poolings_of(config);
  model.dimension *= static_cast<int64_t>(model.poolings.size());
}

void read_step(const SentenceModule& module, SentenceModel& model) {
  if (module.type == "Dropout") return;  // in training only
  if (module.type == "Dense") {
    model.steps.push_back(load_sentence_dense(module.folder, model.dimension, model.remarks));
    model.dimension = model.steps.back()->outputs();
    return;
  }
  model.steps.push_back(nullptr);  // Normalize, whose folder need not be there
  if (!is_there(module.folder / "config.json")) return;
  const JsonFile file(module.folder / "config.json");
  remark_unknown_keys(file, {.obeyed = {"module_input_name", "module_output_name"}}, model.remarks);
  const std::string input = file.root().text("module_input_name", "sentence_embedding");
  if (input != "sentence_embedding" || file.root().text("module_output_name", input.c_str()) != input)
    file.root().fail(fmt::format("expected to normalise the sentence_embedding, got {}", in_quotes(input)));
}

void check_room(const SentenceModel& model) {
  const auto special = static_cast<int32_t>(model.folder.source_tokens().encode_ids("").size());
  if (model.longest <= special) {
    throw FormatError(
        fmt::format("{}: sentences of at most {} tokens have no room beside {} special tokens; raise "
                    "max_seq_length or model_max_length",
                    model.folder.path.string(), model.longest, special));
  }
}

}  // namespace

SentenceModel load_sentence_model(const fs::path& path) {
  if (has_sentence_modules(path))
    read_sentence_modules(path);  // whose errors come before the weights are read
  SentenceModel model{.folder = load_model_folder(path)};
  read_sentence_steps(path, model);
  return model;
}

void read_sentence_steps(const fs::path& path, SentenceModel& model) {
  std::vector<SentenceModule> modules;
  const bool plain = !has_sentence_modules(path);
  if (!plain) modules = read_sentence_modules(path, &model.remarks);
  if (const std::string line = model.folder.remark(); !line.empty()) model.remarks.push_back(line);
  model.dimension = model.folder.model->facts().d_model;
  read_transformer_settings(model.folder.path, model);
  check_room(model);
  const FolderSource* const source = model.folder.source.get();
  if (plain && is_gguf(path) && source != nullptr && source->has(kGgufPoolingFile)) {
    read_pooling(JsonFile(source->read(kGgufPoolingFile), source->path_of(kGgufPoolingFile)), model);
  } else if (plain) {
    model.remarks.push_back(
        fmt::format("{} has no modules.json of sentence-transformers: a vector is the mean of the states",
                    path.string()));
  } else {
    read_sentence_settings(path, model);
    read_pooling(JsonFile(modules[1].folder / "config.json"), model);
    for (size_t i = 2; i < modules.size(); ++i) read_step(modules[i], model);
    read_truncation(path, model);
  }
}

Var SentenceModel::vectors(Context& context, const Sequences& tokens,
                           std::optional<int32_t> unpooled_tokens) const {
  Tape& tape = context.tape;
  Var rows = pool_states(tape, folder.model->read(context, tokens, {}), *tokens.ragged, poolings,
                         unpooled_tokens.value_or(unpooled));
  for (const auto& dense : steps) rows = dense ? dense->of(tape, rows) : unit_rows(tape, rows);
  if (truncate_dim && *truncate_dim < rows.cols())
    rows = ops::block(tape, rows, 0, rows.rows(), 0, *truncate_dim);  // [S, truncate_dim]
  if (rows.cols() != dimension)
    throw ShapeError(
        fmt::format("`dimension` is {}, but the vectors have {} numbers", dimension, rows.cols()));
  require_finite(rows.value(), "sentence vectors", context.blame());
  return context.at({"sentence", SitePart::kVectors},
                    {.value = rows, .rows = one_row_each(tape.arena(), rows.rows())});
}

std::vector<SiteShape> SentenceModel::sites() const {
  std::vector<SiteShape> all = folder.model->sites();
  all.push_back(SiteShape::of({"sentence", SitePart::kVectors}, dimension));
  return all;
}

}  // namespace mh
