// ScoredModel: a folder where the model predicts words, a sentence model where it predicts none.
#include "multihead/folders/scored_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "multihead/base/error.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::filesystem::path golden_of_scored(const char* name) {
  return std::filesystem::path(goldens_folder()) / name;
}

TEST(ScoredModel, OfWordsIsTheFolderAlone) {
  const std::filesystem::path path = golden_of_scored("generate/gpt2");
  const ScoredModel model = load_scored_model(path);
  EXPECT_EQ(model.folder().path, path);
  EXPECT_TRUE(model.folder().model->predicts());
  EXPECT_THAT([&] { model.sentences(); },
              testing::ThrowsMessage<UsageError>(
                  AllOf(HasSubstr("generate/gpt2 holds a gpt2 model that was read without its sentences'"),
                        HasSubstr("load_sentence_model()"))));
}

TEST(ScoredModel, OfVectorsIsTheSentenceModel) {
  const std::filesystem::path path = golden_of_scored("sentences/modes");
  const SentenceModel read = load_sentence_model(path);
  const ScoredModel model = load_scored_model(path);
  EXPECT_EQ(&model.folder(), &model.sentences().folder);
  EXPECT_FALSE(model.folder().model->predicts());
  EXPECT_EQ(model.sentences().poolings, read.poolings);
  EXPECT_EQ(model.sentences().dimension, read.dimension);
  EXPECT_EQ(model.remarks(), read.remarks);
}

TEST(ScoredModel, RemarksWhatItsFolderDoes) {
  ModelFolder folder = load_model_folder(golden_of_scored("generate/gpt2"));
  folder.remarks.clear();
  folder.not_read = {"score.weight"};
  const std::string line = folder.remark();
  EXPECT_THAT(ScoredModel(std::move(folder)).remarks(), testing::ElementsAre(line));
}

}  // namespace
}  // namespace mh
