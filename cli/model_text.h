// Lines as a model's token ids and back: by the folder's tokenizers, or the ids themselves (--token-ids).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/models/model_folder.h"

namespace mh::cli {

class ModelText {
 public:
  /// Throws FileError when the folder has no tokenizer and ids were not asked for. `folder` must outlive
  /// this.
  ModelText(const ModelFolder& folder, bool token_ids);

  using Ids = std::vector<std::vector<int32_t>>;
  /// What the encoder reads, the end token last (added when it is not there). A line beyond the model's
  /// longest sequence is cut, keeping the end token, and reported on standard error with its number; `what`
  /// names the lines there. Throws FormatError on a line that is not ids when it should be.
  Ids sources(const std::vector<std::string>& lines, const std::string& what) const;
  /// Without end token; cut and reported in the same way.
  Ids targets(const std::vector<std::string>& lines, const std::string& what) const;
  std::string text(const std::vector<int32_t>& target) const;

 private:
  enum class Side { kSource, kTarget };
  Ids encode(const std::vector<std::string>& lines, const std::string& what, Side side) const;

  const ModelFolder& folder_;
  bool token_ids_;
};

}  // namespace mh::cli
