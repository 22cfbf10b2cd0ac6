#include "multihead/folders/shipped_folder.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "multihead/base/embed.h"
#include "multihead/base/file.h"
#include "multihead/folders/checkpoint_names.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/sentence_modules.h"

// MULTIHEAD_SHIPPED is share/demo of the sources.
MH_EMBED(mh_shipped_config, MULTIHEAD_SHIPPED "/config.json");
MH_EMBED(mh_shipped_generation_config, MULTIHEAD_SHIPPED "/generation_config.json");
MH_EMBED(mh_shipped_tensors, MULTIHEAD_SHIPPED "/model.safetensors");
MH_EMBED(mh_shipped_tokenizer, MULTIHEAD_SHIPPED "/tokenizer.json");
MH_EMBED(mh_shipped_tokenizer_config, MULTIHEAD_SHIPPED "/tokenizer_config.json");

namespace mh {

namespace fs = std::filesystem;

bool is_shipped(const fs::path& path) {
  const char *begin = mh_shipped_tensors, *end = mh_shipped_tensors_end;
  if (path != kShippedName || begin == end) return false;  // a module for pages has none
  constexpr std::array kOfModels = {kConfigFile, kWeightsFile, kWeightsIndexFile};
  const bool model_here = std::any_of(kOfModels.begin(), kOfModels.end(),
                                      [&](const char* file) { return is_there(path / file); });
  return !model_here && !has_sentence_modules(path) && !is_there(checkpoints_of(path));
}

std::shared_ptr<const FolderSource> open_shipped_folder() {
  MemoryFolder::Files files = {
      {kConfigFile, {mh_shipped_config, mh_shipped_config_end}},
      {kGenerationConfigFile, {mh_shipped_generation_config, mh_shipped_generation_config_end}},
      {kWeightsFile, {mh_shipped_tensors, mh_shipped_tensors_end}},
      {kTokenizerFile, {mh_shipped_tokenizer, mh_shipped_tokenizer_end}},
      {kTokenizerConfigFile, {mh_shipped_tokenizer_config, mh_shipped_tokenizer_config_end}}};
  return std::make_shared<const MemoryFolder>(std::move(files), kShippedName);
}

}  // namespace mh
