// ScoredModel: a model whose texts can be scored: by the words that it predicts, or where it predicts none, by its
// sentences' vectors (heads/importance/scored_texts.h). It is a model folder, and a sentence model where that is known.
//
//   const mh::ScoredModel model = mh::load_scored_model("demo");
//   model.folder().source_tokens(), *model.folder().model;
#pragma once

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/folders/sentence_model.h"

namespace mh {

class ScoredModel {
 public:
  ScoredModel(ModelFolder folder);
  ScoredModel(SentenceModel model);

  const ModelFolder& folder() const;
  /// How its sentences become vectors. Throws UsageError when it was made of a folder alone.
  const SentenceModel& sentences() const;
  /// Lines worth knowing: the sentence model's, or the folder's.
  std::vector<std::string> remarks() const;

 private:
  std::variant<ModelFolder, SentenceModel> model_;
};

/// A model that predicts words, and a classifier, as a folder, any other one as a sentence model. Throws as load_model_folder() and
/// load_sentence_model() do.
ScoredModel load_scored_model(const std::filesystem::path& path);

}  // namespace mh
