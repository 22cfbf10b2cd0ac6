// Saves all attention weights of one sentence in a file for other programs.
#pragma once

#include <filesystem>

#include "multihead/heads/sites/observe_text.h"

namespace mh {

/// A path that ends with ".safetensors" becomes one file with a tensor NAME.weights [H, Tq, Tk] for each
/// attention, source_ids and target_ids (what the decoder read), and the tokens as JSON lists in its
/// metadata. Any other path becomes a folder with NAME.weights.npy, source_ids.npy, target_ids.npy,
/// source_tokens.txt and target_tokens.txt; it appears as a whole. Throws FileError, also when something
/// else has that name, and UsageError unless the weights of all heads were kept.
void save_attention(const Observation& seen, const std::filesystem::path& path);

}  // namespace mh
