// The heads of cross-attention that align, as a model's folder keeps them: alignment_heads of generation_config.json
// (docs/file-formats.md).
#pragma once

#include <optional>

#include "multihead/folders/model_folder.h"
#include "multihead/generate/search.h"

namespace mh {

/// Throws UsageError unless the model was read from a folder, whose generation_config.json can be written, and FileError when it
/// cannot; called before long work, whose result would be lost.
void check_can_save_alignment_heads(const ModelFolder& folder);

/// Writes them into the folder's generation_config.json in one step; all else in it stays. Where there is none yet, the file gets what
/// config.json says of it. Throws as the check does, and UsageError on heads that the model does not have.
void save_alignment_heads(const ModelFolder& folder, const AligningHeads& heads);

/// Those of the folder; none: its file does not say. Throws UsageError that names the file on heads that the model does not have.
std::optional<AligningHeads> alignment_heads_of(const ModelFolder& folder);

}  // namespace mh
