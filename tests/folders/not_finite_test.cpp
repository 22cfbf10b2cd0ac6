// Finite weights that overflow: every number that a model would give is an error instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/sentence_dense.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/vocabulary_head.h"
#include "tests/folders/families/golden_model.h"
#include "tests/support/places.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::ThrowsMessage;

constexpr float kHuge = 3e38f;  // finite; nearly the largest float

/// Fills the parameters whose names end with `ending`.
void fill(Model& model, const std::string& ending, float value) {
  int filled = 0;
  model.visit([&](const std::string& name, Parameter& parameter) {
    if (!name.ends_with(ending)) return;
    parameter.value.fill(value);
    parameter.changed();
    ++filled;
  });
  ASSERT_GT(filled, 0) << ending;
}

template <class Call>
void expect_not_finite(Call&& call, const std::string& what) {
  EXPECT_THAT(call, ThrowsMessage<Error>("the model's " + what +
                                         " are not finite numbers; its weights may be damaged"));
}

class NotFinite : public testing::Test {
 protected:
  static ModelFolder golden(const char* family, const char* name) {
    return load_model_folder(test::GoldenModel(family, name).folder);
  }
  Tape tape;
  Context context{.tape = tape};
  VocabularyScratch scratch;
  const Batch batch{std::vector<std::vector<int32_t>>{{3, 7, 5}, {11, 4, 9, 2, 8}}};
};

TEST_F(NotFinite, StatesOfEveryKindOfModel) {
  const ModelFolder bert = golden("bert", "pretraining"), gpt2 = golden("gpt2", "tied"),
                    llama = golden("llama", "tied_grouped");
  EncoderDecoder translator(small_shape().config());
  translator.initialise(3);
  for (const Model* model : {bert.model.get(), gpt2.model.get(), llama.model.get()})
    EXPECT_NO_THROW(model->read(context, batch.view(), {}));
  EXPECT_NO_THROW(translator.read(context, batch.view(), batch.view()));
  // The gain and bias of the last norm: 3e38 (1 + x), which overflows.
  fill(*bert.model, "encoder.2.feed_forward_norm.gain", kHuge);
  fill(*bert.model, "encoder.2.feed_forward_norm.bias", kHuge);
  fill(*gpt2.model, "decoder.final_norm.gain", kHuge);
  fill(*gpt2.model, "decoder.final_norm.bias", kHuge);
  fill(*llama.model, "decoder.final_norm.gain", kHuge);
  fill(translator, "decoder.2.feed_forward_norm.gain", kHuge);
  fill(translator, "decoder.2.feed_forward_norm.bias", kHuge);
  for (const Model* model : {bert.model.get(), gpt2.model.get(), llama.model.get()})
    expect_not_finite([&] { model->read(context, batch.view(), {}); }, "states");
  EXPECT_NO_THROW(translator.read(context, batch.view(), {}));  // its encoder is as it was
  expect_not_finite([&] { translator.read(context, batch.view(), batch.view()); }, "states");
}

// The states are finite; what is made of them is not.
TEST_F(NotFinite, PooledStates) {
  const ModelFolder bert = golden("bert", "pretraining");
  const auto& model = dynamic_cast<const EncoderModel&>(*bert.model);
  fill(*bert.model, "pooler.w", kHuge);
  fill(*bert.model, "pooler.b", kHuge);
  const Var states = model.states(context, batch.view());
  expect_not_finite([&] { model.pooled(context, states, batch.view()); }, "pooled states");
}

TEST_F(NotFinite, LogitsAndProbabilities) {
  for (const auto& [family, name] : {std::pair{"gpt2", "tied"}, {"llama", "untied_biased_linear_bf16"}}) {
    const ModelFolder folder = golden(family, name);
    const LanguageModel& model = folder.language_model();
    const VocabularyHead& head = model.vocabulary();
    const Tensor states = copied(model.read(context, batch.view(), {}).value());
    const std::vector<int32_t> targets(static_cast<size_t>(states.rows()), 5);
    std::vector<Candidate> best(targets.size());
    Tensor logits(states.rows(), head.size());
    // Of one token alone, in the table that is tied or in the output's own.
    folder.model->visit([&](const std::string& parameter_name, Parameter& parameter) {
      if (parameter_name != "embedding" && parameter_name != "output") return;
      for (int64_t j = 0; j < parameter.value.cols(); ++j)
        parameter.value(7, j) = states(0, j) > 0 ? kHuge : -kHuge;
      parameter.changed();
    });
    expect_not_finite([&] { head.logits(states.view(), logits.view()); }, "logits");
    expect_not_finite([&] { head.log_probabilities(states.view(), targets, scratch); }, "probabilities");
    expect_not_finite([&] { head.best_next(states.view(), {}, best, scratch); }, "probabilities");
  }
}

TEST_F(NotFinite, VectorsOfSentences) {
  SentenceModel model = load_sentence_model(std::filesystem::path(goldens_folder()) / "sentences" / "dense");
  EXPECT_NO_THROW(model.vectors(context, batch.view()));
  // A layer with tanh, which would make 1 of infinity.
  const auto dense = [](float value, const SentenceActivation* activation) {
    Tensor w(14, 9);
    w.fill(value);
    Tensor b(1, 9);
    b.fill(value);
    return std::make_shared<const SentenceDense>(Weight(std::move(w)), Weight(std::move(b)), activation);
  };
  static constexpr SentenceActivation kTanh{
      .name = "Tanh", .value = [](double x) { return std::tanh(x); }, .slope = [](double) { return 0.0; }};
  const SentenceActivation* const activations[] = {&kTanh, nullptr};
  for (const SentenceActivation* const activation : activations) {
    model.steps = {dense(0.1f, activation)};
    EXPECT_NO_THROW(model.vectors(context, batch.view()));
    model.steps = {dense(kHuge, activation)};
    expect_not_finite([&] { model.vectors(context, batch.view()); }, "sentence vectors");
  }
  // Pooling alone: sum x / sqrt(n) of finite states.
  model.steps = {};
  model.dimension = 14;
  model.poolings = {Pooling::kMeanSqrtLength};
  fill(*model.folder.model, "encoder.1.feed_forward_norm.gain", 0);
  fill(*model.folder.model, "encoder.1.feed_forward_norm.bias", kHuge);
  EXPECT_NO_THROW(model.folder.model->read(context, batch.view(), {}));
  expect_not_finite([&] { model.vectors(context, batch.view()); }, "sentence vectors");
}

}  // namespace
}  // namespace mh
