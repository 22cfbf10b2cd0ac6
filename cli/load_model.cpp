#include "cli/load_model.h"

#include "cli/common.h"

namespace mh::cli {

ModelFolder load_model(const std::string& path) {
  ModelFolder folder = load_model_folder(path);
  if (const std::string line = folder.remark(); !line.empty()) remark(line);
  return folder;
}

}  // namespace mh::cli
