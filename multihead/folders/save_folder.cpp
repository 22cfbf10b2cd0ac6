#include "multihead/folders/save_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/family.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_contents.h"
#include "multihead/folders/int8_matrices.h"
#include "multihead/folders/replaced_folder.h"
#include "multihead/folders/saved_config.h"
#include "multihead/folders/write_parameters.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

void refuse_its_own_folder(const fs::path& path, const ModelFolder& folder) {
  std::error_code code;
  if (!fs::equivalent(path, folder.path, code)) return;
  throw UsageError(
      fmt::format("{} is the folder that the model was read from; choose a new name", path.string()));
}

FolderContents contents_of(const SavedModel& saved, const SaveOptions& options) {
  if (options.begun_from != nullptr) {
    SavedModel further = saved;
    further.model_type = options.begun_from->model_type;
    further.folder = options.begun_from;
    return contents_as_read(further, options);
  }
  for (const Family* family : families()) {
    if (family->model_type == saved.model_type && family->write != nullptr)
      return family->write(saved, options);
  }
  return contents_as_read(saved, options);
}

}  // namespace

SavedModel::SavedModel(const EncoderDecoder& made) : model(made), model_type("multihead") {}

void save_model_folder(const fs::path& path, const SavedModel& saved, const SaveOptions& options) {
  if (saved.folder != nullptr) refuse_its_own_folder(path, *saved.folder);
  if (saved.folder != nullptr || options.begun_from != nullptr) {
    if (options.tokenizer != nullptr || options.target_tokenizer != nullptr)
      throw UsageError("a model that was read from a folder is saved with its own tokenizers; give none");
  }
  saved_type_name(options.type);  // refuses what is not written, before anything is done
  const FolderContents contents = contents_of(saved, options);
  refuse_to_replace(path, options.replace);
  if (!contents.refusal.empty() && options.own_format == OwnFormat::kRefused)
    throw UsageError(contents.refusal);
  const auto small_files = contents.small_files();

  const WriteParametersOptions how{.type = options.type,
                                   .largest_file = options.largest_file,
                                   .copied_from = contents.read_from.get(),
                                   .copied = contents.copied,
                                   .matrices = options.matrices};
  const std::vector<std::string> int8 = int8_tensors(saved.model, contents.place, how);
  if (int8.empty() && options.matrices == SavedMatrices::kInt8) {
    throw UsageError(
        fmt::format("{} has no matrix [out, in] of rows that are a multiple of 32 numbers, which int8 is "
                    "for; write it as numbers",
                    saved.model_type));
  }
  FolderWriter writer(path);
  std::vector<std::string> own_files = write_parameters(writer, saved.model, contents.place, how);
  for (const auto& [name, bytes] : small_files) {
    writer.add(name, bytes);
    own_files.push_back(name);
  }
  for (const auto& [name, bytes] : options.extra_files) {
    if (!small_files.contains(name)) writer.add(name, bytes);
  }
  std::sort(own_files.begin(), own_files.end());
  const std::string config = contents.config(own_files);
  writer.add(kConfigFile, int8.empty() ? config : with_int8_config(config, int8, contents.prefixes));
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
  return contents_of(folder, {.removed = {removed.begin(), removed.end()}}).format;
}

}  // namespace mh
