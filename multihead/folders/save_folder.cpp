#include "multihead/folders/save_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/families/family.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/replaced_folder.h"
#include "multihead/folders/saved_config.h"
#include "multihead/folders/tokenizer_files.h"
#include "multihead/folders/tokenizer_fit.h"
#include "multihead/folders/write_parameters.h"
#include "multihead/io/config.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

void refuse_to_save_mismatch(const Tokenizer* tokenizer, int32_t vocabulary, const ModelFacts& facts,
                             const char* whose) {
  if (tokenizer == nullptr) return;
  // Its own names for these ids: what tokenizer_config.json will say.
  const auto named = [&](int32_t id) {
    return id < tokenizer->size() ? tokenizer->token_of(id) : std::string();
  };
  auto mismatches =
      tokenizer_mismatches(*tokenizer, vocabulary, facts, named(facts.eos_id), named(facts.pad_id));
  if (std::max(facts.eos_id, facts.pad_id) >= tokenizer->size()) {
    mismatches.push_back(
        fmt::format("it has no tokens with the ids {} (end) and {} (pad)", facts.eos_id, facts.pad_id));
  }
  if (mismatches.empty()) return;
  throw UsageError(
      fmt::format("the {} tokenizer does not match the model: {}", whose, fmt::join(mismatches, "; ")));
}

void refuse_its_own_folder(const fs::path& path, const ModelFolder& folder) {
  std::error_code code;
  if (!fs::equivalent(path, folder.path, code)) return;
  throw UsageError(
      fmt::format("{} is the folder that the model was read from; choose a new name", path.string()));
}

}  // namespace

void write_model_files(FolderWriter& folder, const EncoderDecoder& model, const SaveOptions& options) {
  const EncoderDecoderConfig& config = model.config();
  const ModelFacts facts = model.facts();
  refuse_to_save_mismatch(options.tokenizer, facts.source_vocabulary, facts, "source");
  refuse_to_save_mismatch(options.target_tokenizer, facts.vocabulary, facts, "target");

  const std::string_view type = natural_model_type(config);
  std::map<std::string, std::string> files = options.extra_files;
  files[kGenerationConfigFile] = write_generation_config(config, options.beam_size);
  if (options.tokenizer != nullptr) {
    const auto of_tokenizer = options.tokenizer->files(kTokenizerFile);
    if (of_tokenizer.contains(kTokenizerFile))
      files[kTokenizerConfigFile] = write_tokenizer_config(*options.tokenizer, config);
    files.insert(of_tokenizer.begin(), of_tokenizer.end());
  }
  if (options.target_tokenizer != nullptr) files.merge(options.target_tokenizer->files(kTargetTokenizerFile));
  const Tying tying = tying_of(model);
  std::vector<std::string> own_files = write_parameters(
      folder, model,
      [&](std::string_view parameter) { return encoder_decoder_place(type, parameter, tying); },
      {.type = options.type, .largest_file = options.largest_file});
  for (const auto& [name, bytes] : files) {
    if (!options.extra_files.contains(name)) own_files.push_back(name);
  }
  std::sort(own_files.begin(), own_files.end());
  files[kConfigFile] =
      with_number_type(write_encoder_decoder_config(shape_of(config), type, tying, own_files), options.type);
  for (const auto& [name, bytes] : files) folder.add(name, bytes);
}

void save_model_folder(const fs::path& path, const EncoderDecoder& model, const SaveOptions& options) {
  refuse_to_replace(path, options.replace);
  FolderWriter folder(path);
  write_model_files(folder, model, options);
  folder.commit();
}

void save_model_folder(const fs::path& path, const ModelFolder& folder, const SaveFolderOptions& options) {
  refuse_its_own_folder(path, folder);
  if (folder.model->kind() == ModelKind::kTranslator) {
    return save_model_folder(
        path, folder.translator(),
        {.tokenizer = folder.tokenizer ? &*folder.tokenizer : nullptr,
         .target_tokenizer = folder.target_tokenizer ? &*folder.target_tokenizer : nullptr,
         .type = options.type,
         .largest_file = options.largest_file,
         .replace = options.replace});
  }
  if (!folder.source)
    throw UsageError("this model was not read from a folder, whose format it could be written in; load one");
  refuse_to_replace(path, options.replace);
  const FolderSource& source = *folder.source;
  const FolderPlan plan = read_plan(source.read(kConfigFile), source.path_of(kConfigFile));
  const TensorFiles files = source.tensors();
  const std::unique_ptr<Model> as_read = make_model(files, plan);  // its parameters take no memory
  const SavedFormat format = saved_format(plan, *as_read, *folder.model, options.removed);
  if (format.kind == SavedFormat::Kind::kOwn && !format.as_read &&
      options.own_format == OwnFormat::kRefused) {
    throw UsageError(
        fmt::format("the config.json of {} cannot hold these heads: {}; allow a folder in our own "
                    "format, which Transformers does not open: `own_format`",
                    folder.model_type, format.why));
  }
  const std::string config = saved_config(plan, *as_read, folder, format, options);
  FolderWriter writer(path);
  writer.add(kConfigFile, config);
  for (const std::string& name : source.small_files()) {
    if (name != kConfigFile) writer.add(name, source.read(name));
  }
  const auto place = [&](std::string_view parameter) {
    TensorPlace at = plan.place(parameter);
    std::string name = tensor_of(files, plan, parameter);
    if (name.empty()) name = plan.prefixes.front() + at.names.front();
    at.names = {std::move(name)};
    return at;
  };
  write_parameters(writer, *folder.model, place,
                   {.type = options.type,
                    .largest_file = options.largest_file,
                    .copied_from = &files,
                    .copied = folder.not_read});
  writer.commit();
}

std::string format_line(const SavedFormat& format, const std::string& model_type) {
  switch (format.kind) {
    case SavedFormat::Kind::kFamily:
      return "Transformers opens the folder";
    case SavedFormat::Kind::kPrunedHeads:
      return "Transformers 4 opens the folder by its pruned_heads; Transformers 5 no longer prunes";
    case SavedFormat::Kind::kOwn:
      break;
  }
  return fmt::format(
      "Transformers cannot open the folder, multihead does: the format of {} has no such heads ({})",
      model_type, format.why);
}

SavedFormat format_when_saved(const ModelFolder& folder, std::span<const HeadName> removed) {
  if (folder.model->kind() == ModelKind::kTranslator) {
    if (natural_model_type(folder.translator().config()) == "marian") return {};
    return {.kind = SavedFormat::Kind::kOwn,
            .why = "MarianMTModel has the same heads in all layers, of d_model / heads columns"};
  }
  if (!folder.source)
    throw UsageError("this model was not read from a folder, whose format it could be written in; load one");
  const FolderSource& source = *folder.source;
  const FolderPlan plan = read_plan(source.read(kConfigFile), source.path_of(kConfigFile));
  return saved_format(plan, *make_model(source.tensors(), plan), *folder.model, removed);
}

}  // namespace mh
