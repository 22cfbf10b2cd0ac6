#include "multihead/folders/scored_model.h"

#include <fmt/format.h>

#include <utility>

#include "multihead/base/error.h"

namespace mh {

ScoredModel::ScoredModel(ModelFolder folder) : model_(std::move(folder)) {}

ScoredModel::ScoredModel(SentenceModel model) : model_(std::move(model)) {}

const ModelFolder& ScoredModel::folder() const {
  const auto* const sentences = std::get_if<SentenceModel>(&model_);
  return sentences != nullptr ? sentences->folder : std::get<ModelFolder>(model_);
}

const SentenceModel& ScoredModel::sentences() const {
  if (const auto* const sentences = std::get_if<SentenceModel>(&model_)) return *sentences;
  throw UsageError(fmt::format(
      "{} holds a {} model that was read without its sentences' vectors; load_sentence_model() reads both",
      folder().path.string(), folder().model_type));
}

std::vector<std::string> ScoredModel::remarks() const {
  if (const auto* const sentences = std::get_if<SentenceModel>(&model_)) return sentences->remarks;
  const std::string line = folder().remark();
  return line.empty() ? std::vector<std::string>() : std::vector<std::string>{line};
}

ScoredModel load_scored_model(const std::filesystem::path& path) {
  ModelFolder folder = load_model_folder(path);
  if (!folder.gives_vectors_alone()) return folder;
  SentenceModel model{.folder = std::move(folder)};
  read_sentence_steps(path, model);
  return model;
}

}  // namespace mh
