#include "multihead/folders/alignment_heads.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/generation_config.h"
#include "multihead/folders/generation_keys.h"
#include "multihead/generate/align.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {

void check_can_save_alignment_heads(const ModelFolder& folder) {
  std::error_code none;
  if (folder.shipped || !std::filesystem::is_directory(folder.path, none)) {
    throw UsageError(fmt::format(
        "{} is no folder whose {} could be written; `multihead convert --dtype float32` writes it as one",
        folder.shipped ? "the model that comes with multihead" : folder.path.string(),
        kGenerationConfigFile));
  }
  check_can_write_file(folder.path / kGenerationConfigFile);
}

void save_alignment_heads(const ModelFolder& folder, const AligningHeads& heads) {
  check_can_save_alignment_heads(folder);
  check_heads(folder.translator(), heads, "alignment heads");
  const FolderSource& source = *folder.source;
  const bool there = source.has(kGenerationConfigFile);
  const std::string name = source.path_of(there ? kGenerationConfigFile : kConfigFile);
  const std::string text = there ? source.read(kGenerationConfigFile)
                                 : generation_part(source.read(kConfigFile), name, TokenIds::kToo);
  write_file_atomically(folder.path / kGenerationConfigFile, with_alignment_heads(text, name, heads));
}

std::optional<AligningHeads> alignment_heads_of(const ModelFolder& folder) {
  const auto& heads = folder.generation.alignment;
  if (heads) {
    check_heads(folder.translator(), *heads,
                fmt::format("{}: alignment_heads", folder.source->path_of(kGenerationConfigFile)));
  }
  return heads;
}

}  // namespace mh
