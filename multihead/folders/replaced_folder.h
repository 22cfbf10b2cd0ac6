// What may be replaced where a model is saved: a folder that this library wrote, and others only when the caller allows it.
#pragma once

#include <filesystem>

#include "multihead/folders/save_folder.h"

namespace mh {

/// In the metadata of files of weights that this library writes; whoever writes the weights anew leaves it out.
inline constexpr const char *kWriterKey = "writer", *kWriter = "multihead";

/// Whether this library wrote the weights that lie there, or, before it noted that, its config.json. False where there is none.
bool is_written_here(const std::filesystem::path& folder);

/// Throws FileError unless nothing is there, or an empty folder, or a model's that may be replaced.
void refuse_to_replace(const std::filesystem::path& folder, Replace replace);

}  // namespace mh
