// Folders that BertForPreTraining, BertForMaskedLM and BertModel wrote, and what transformers computed with them in
// double precision on a padded batch. tests/oracles/bert_goldens.py makes both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/file.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/model_folder.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/models/weights_file.h"
#include "tests/models/families/golden_model.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct Kind {
  const char* name;
  bool pooler, words;
};

class BertGoldens : public testing::TestWithParam<Kind> {
 protected:
  test::GoldenModel golden{"bert", GetParam().name};
  ModelFolder folder = load_model_folder(golden.folder);
  const EncoderModel& model = dynamic_cast<const EncoderModel&>(*folder.model);
  const Batch batch{golden.sequences};
  std::vector<int32_t> types() const {
    const auto found = golden.file.integers("types");
    return {found.begin(), found.end()};
  }
};

TEST_P(BertGoldens, StatesPooledStatesAndWordsAreThoseOfTransformers) {
  EXPECT_EQ(folder.model_type, "bert");
  Tape tape;
  Context context{.tape = tape};
  const Var states = model.states(context, batch.view(), types());
  golden.expect_near(states.value(), "states");
  if (GetParam().pooler) {
    const Tensor pooled = model.pooled(context, states, batch.view());
    golden.expect_near(pooled.view(), "pooled");
  } else {
    EXPECT_THAT([&] { model.pooled(context, states, batch.view()); },
                ThrowsMessage<UsageError>(HasSubstr("no pooler")));
  }
  if (GetParam().words) {
    const Var before = model.before_words(context, states);
    Tensor logits(before.rows(), model.masked_words().size());
    model.masked_words().logits(before.value(), logits.view());
    golden.expect_near(logits.view(), "logits");
  } else {
    EXPECT_THAT([&] { model.masked_words(); },
                ThrowsMessage<UsageError>(HasSubstr("no head for masked words")));
  }
}

TEST_P(BertGoldens, KindsOfTokenAreThoseThereAre) {
  Tape tape;
  Context context{.tape = tape};
  std::vector<int32_t> wrong = types();
  wrong.back() = 7;
  EXPECT_THAT([&] { model.states(context, batch.view(), wrong); },
              ThrowsMessage<UsageError>(HasSubstr("token type 7 is outside")));
  wrong.pop_back();
  EXPECT_THAT([&] { model.states(context, batch.view(), wrong); },
              ThrowsMessage<UsageError>(HasSubstr("give one each")));
  // None given means kind 0.
  const std::vector<int32_t> zeros(batch.ids.size(), 0);
  const ConstMatrixView a = model.states(context, batch.view()).value(),
                        b = model.states(context, batch.view(), zeros).value();
  for (int64_t i = 0; i < a.rows; ++i) EXPECT_EQ(a(i, 0), b(i, 0));
}

TEST_P(BertGoldens, ItSaysNoNextToken) {
  EXPECT_THAT([&] { folder.language_model(); },
              ThrowsMessage<UsageError>(HasSubstr("holds a bert model, which has no next token to say")));
  EXPECT_EQ(model.attentions().front().name, "encoder.0.self_attention");
}

TEST(BertNames, GammaAndBetaOfOldFilesAreRead) {
  const test::GoldenModel golden("bert", "encoder");
  const SafetensorsFile file = SafetensorsFile::open(golden.folder / "model.safetensors");
  std::vector<std::vector<float>> numbers;
  std::vector<NamedTensor> tensors;
  for (const TensorEntry& entry : file.entries()) numbers.push_back(file.floats(entry.name));
  for (size_t i = 0; i < numbers.size(); ++i) {
    std::string name = "bert." + file.entries()[i].name;
    for (const auto& [now, once] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}) {
      const std::string_view ending = now;
      if (name.ends_with(ending)) name = name.substr(0, name.size() - ending.size()) + once;
    }
    tensors.push_back(
        {.name = name, .shape = file.entries()[i].shape, .data = std::span<const float>(numbers[i])});
  }
  const WeightFiles files(SafetensorsFile::from_bytes(write_safetensors(tensors, {}), "old"), "old");
  const auto model = read_weights(files, read_plan(read_file(golden.folder / "config.json"), "config.json"));
  Tape tape;
  Context context{.tape = tape};
  const Batch batch(golden.sequences);
  const auto types = golden.file.integers("types");
  golden.expect_near(dynamic_cast<const EncoderModel&>(*model)
                         .states(context, batch.view(), std::vector<int32_t>(types.begin(), types.end()))
                         .value(),
                     "states");
}

INSTANTIATE_TEST_SUITE_P(Folders, BertGoldens,
                         testing::Values(Kind{"pretraining", true, true}, Kind{"masked", false, true},
                                         Kind{"encoder", true, false}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace mh
