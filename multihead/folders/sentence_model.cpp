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
#include "multihead/folders/json_file.h"
#include "multihead/folders/sentence_dense.h"
#include "multihead/folders/sentence_modules.h"
#include "multihead/folders/sentence_pooling.h"
#include "multihead/nn/context.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

Pooling pooling_of(const JsonNode& node) {
  std::string known;
  for (const auto& [name, pooling] : kPoolingNames) {
    if (node.text() == name) return pooling;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  node.fail(fmt::format("expected one of {}, got {}", known, in_quotes(node.text())));
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

/// Of the model's states.
int64_t width_of(const Model& model) {
  int64_t width = 0;
  model.visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    if (name == "embedding") width = parameter.value.cols();
  }));
  return width;
}

void read_pooling(const fs::path& folder, SentenceModel& model) {
  const JsonFile file(folder / "config.json");
  const JsonNode config = file.root();
  for (const char* key : {"embedding_dimension", "word_embedding_dimension"}) {
    const auto given = config.find(key);
    if (given && given->number() != model.dimension) {
      given->fail(fmt::format("expected {}, the numbers of a state of the model, got {}", model.dimension,
                              given->number()));
    }
  }
  if (!config.flag("include_prompt", true) && !model.prompt.empty())
    config.fail("include_prompt is false, which is not supported where the model has a prompt");
  model.poolings = poolings_of(config);
  model.dimension *= static_cast<int64_t>(model.poolings.size());
}

void read_step(const SentenceModule& module, SentenceModel& model) {
  if (module.type == "Dropout") return;  // in training only
  if (module.type == "Dense") {
    model.steps.push_back(load_sentence_dense(module.folder, model.dimension));
    model.dimension = model.steps.back()->outputs();
    return;
  }
  model.steps.push_back(nullptr);  // Normalize, whose folder need not be there
  if (!is_there(module.folder / "config.json")) return;
  const JsonFile file(module.folder / "config.json");
  const std::string input = file.root().text("module_input_name", "sentence_embedding");
  if (input != "sentence_embedding" || file.root().text("module_output_name", input.c_str()) != input)
    file.root().fail(fmt::format("expected to normalise the sentence_embedding, got {}", in_quotes(input)));
}

constexpr const char* kSettings = "config_sentence_transformers.json";

void read_prompt(const fs::path& root, SentenceModel& model) {
  const fs::path path = root / kSettings;
  if (!is_there(path)) return;
  const JsonFile file(path);
  const auto name = file.root().find("default_prompt_name");
  if (!name) return;
  const auto prompts = file.root().find("prompts");
  const auto prompt = prompts ? prompts->find(name->text().c_str()) : std::nullopt;
  if (!prompt)
    file.root().fail(fmt::format("default_prompt_name: there is no prompt {}", in_quotes(name->text())));
  model.prompt = prompt->text();
}

/// After all steps: sentence-transformers cuts what they gave, and does not divide by the length again.
void read_truncation(const fs::path& root, SentenceModel& model) {
  if (!is_there(root / kSettings)) return;
  const JsonFile file(root / kSettings);
  const auto given = file.root().find("truncate_dim");
  if (!given) return;
  const int32_t kept = given->number();
  if (kept < 1 || kept > model.dimension)
    given->fail(fmt::format("expected 1 to {}, the numbers of a vector, got {}", model.dimension, kept));
  model.truncate_dim = model.dimension = kept;
}

/// The first of sentence_bert_config.json and the names that older versions gave it.
std::optional<fs::path> transformer_settings(const fs::path& folder) {
  for (const char* kind : {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    fs::path path = folder / fmt::format("sentence_{}_config.json", kind);
    if (is_there(path)) return path;
  }
  return std::nullopt;
}

/// Of sentence_bert_config.json, since version 6 of sentence-transformers.
void refuse_messages(const JsonNode& settings) {
  const auto modalities = settings.find("modality_config");
  if (!modalities) return;
  if (const auto message = modalities->find("message")) {
    message->fail(
        "sentence-transformers puts every text into the chat template of the model, which is not supported; "
        "take this entry out for vectors of the bare text, which are others");
  }
}

/// max_seq_length of sentence_bert_config.json; without it model_max_length of tokenizer_config.json; never
/// more than the model has positions for.
void read_limit(const fs::path& folder, SentenceModel& model) {
  const int32_t positions = model.folder.model->facts().max_positions;
  model.longest = positions;
  if (const auto path = transformer_settings(folder)) {
    const JsonFile file(*path);
    if (const std::string task = file.root().text("transformer_task", "feature-extraction");
        task != "feature-extraction")
      file.root().fail(fmt::format("transformer_task {} is not supported", in_quotes(task)));
    refuse_messages(file.root());
    model.lowercase = file.root().flag("do_lower_case", false);
    if (const auto given = file.root().find("max_seq_length")) {
      if (given->number() < 1) given->fail("expected at least 1 token");
      model.longest = std::min(given->number(), positions);
      if (given->number() > positions) {
        model.remarks.push_back(fmt::format("{}: max_seq_length is {}; the model reads {} tokens",
                                            path->string(), given->number(), positions));
      }
      return;
    }
  }
  if (!is_there(folder / "tokenizer_config.json")) return;
  const JsonFile file(folder / "tokenizer_config.json");
  const auto given = file.root().find("model_max_length");
  if (!given) return;
  // Where nothing limits it, transformers writes 10^30.
  if (!given->value().is_number() || !(given->value().get<double>() >= 1))
    given->fail("expected a number of at least 1");
  if (given->value().get<double>() < positions) model.longest = given->value().get<int32_t>();
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
  if (!plain) modules = read_sentence_modules(path);
  if (const std::string line = model.folder.remark(); !line.empty()) model.remarks.push_back(line);
  model.dimension = width_of(*model.folder.model);
  read_limit(model.folder.path, model);
  if (plain) {
    model.remarks.push_back(
        fmt::format("{} has no modules.json of sentence-transformers: a vector is the mean of the states",
                    path.string()));
  } else {
    read_prompt(path, model);
    read_pooling(modules[1].folder, model);
    for (size_t i = 2; i < modules.size(); ++i) read_step(modules[i], model);
    read_truncation(path, model);
  }
  check_room(model);
}

Var SentenceModel::vectors(Context& context, const Sequences& tokens) const {
  Tape& tape = context.tape;
  Var rows = pool_states(tape, folder.model->read(context, tokens, {}), *tokens.ragged, poolings);
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
  all.push_back({.name = Site{"sentence", SitePart::kVectors}.name(), .columns = dimension});
  return all;
}

}  // namespace mh
