// Classifiers that transformers wrote, and the logits and gradients that it computed with them in double precision
// (tests/oracles/label_goldens.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/scores.h"
#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/encoder_model.h"
#include "tests/folders/families/golden_model.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Classifier {
  const char* name;
  LabelsOf of;
  LabelScores scores;
  std::vector<std::string> labels;
};

class LabelGoldens : public testing::TestWithParam<Classifier> {
 protected:
  test::GoldenModel golden{"labels", GetParam().name};
  ModelFolder folder = load_model_folder(golden.folder);
  const Batch batch{golden.sequences};

  Sequences tokens(std::vector<int32_t>& types) const {
    const auto found = golden.file.integers("types");
    types.assign(found.begin(), found.end());
    Sequences all = batch.view();
    if (folder.model->embedding_config().token_types > 0) all.types = types;
    return all;
  }
  Var logits(const Model& model, Context& context, const Sequences& all) const {
    return model.label_logits(context, model.read(context, all, {}), all);
  }
};

TEST_P(LabelGoldens, LogitsAreThoseOfTransformers) {
  EXPECT_EQ(folder.remark(), "");
  ASSERT_TRUE(folder.labels);
  EXPECT_EQ(folder.labels->of, GetParam().of);
  EXPECT_EQ(folder.labels->scores, GetParam().scores);
  EXPECT_EQ(folder.labels->names, GetParam().labels);
  Tape tape;
  Context context{.tape = tape};
  std::vector<int32_t> types;
  golden.expect_near(logits(*folder.model, context, tokens(types)).value(), "logits");
}

TEST_P(LabelGoldens, GradientsOfALabelAreThoseOfTransformers) {
  Tape tape(Tape::Mode::kRecord);
  Context context{.tape = tape};
  std::vector<int32_t> types;
  const Var all = logits(*folder.model, context, tokens(types));
  std::vector<int32_t> rows(static_cast<size_t>(all.rows())), first(rows.size(), 0);
  std::iota(rows.begin(), rows.end(), 0);
  tape.backward(ops::sum(tape, ops::pick(tape, all, rows, first)));
  ConstMatrixView gradient;  // of the table
  folder.model->visit(ParameterVisitor([&](const std::string& name, Parameter& parameter) {
    if (name == "embedding") gradient = parameter.gradient_sum();
  }));
  golden.expect_near(gradient, "gradient");
}

TEST_P(LabelGoldens, ASavedFolderIsTheSameClassifier) {
  const test::ScratchFolder scratch;
  save_model_folder(scratch / "saved", folder);
  const ModelFolder again = load_model_folder(scratch / "saved");
  ASSERT_TRUE(again.labels);
  EXPECT_EQ(again.labels->names, folder.labels->names);
  Tape tape;
  Context context{.tape = tape};
  std::vector<int32_t> types;
  golden.expect_near(logits(*again.model, context, tokens(types)).value(), "logits");
}

std::vector<std::string> numbered(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("LABEL_" + std::to_string(i));
  return names;
}

constexpr LabelsOf kTexts = LabelsOf::kTexts, kTokens = LabelsOf::kTokens;
INSTANTIATE_TEST_SUITE_P(
    Folders, LabelGoldens,
    testing::Values(
        Classifier{"bert_pairs", kTexts, LabelScores::kSoftmax, {"entailment", "neutral", "contradiction"}},
        Classifier{"bert_regression", kTexts, LabelScores::kLogits, numbered(1)},
        Classifier{"bert_tokens", kTokens, LabelScores::kSoftmax, {"O", "B-PER", "I-PER", "B-LOC", "I-LOC"}},
        Classifier{"bert_words", kTokens, LabelScores::kSoftmax, {"O", "B-PER", "I-PER"}},
        Classifier{"roberta_texts", kTexts, LabelScores::kSigmoid, {"joy", "anger", "fear", "love"}},
        Classifier{"roberta_tokens", kTokens, LabelScores::kSoftmax, numbered(7)},
        Classifier{"xlm_roberta_ranker", kTexts, LabelScores::kSigmoid, numbered(1)},
        Classifier{"camembert_tokens", kTokens, LabelScores::kSoftmax, numbered(3)},
        Classifier{"distilbert_texts", kTexts, LabelScores::kSoftmax, {"NEGATIVE", "POSITIVE"}},
        Classifier{"distilbert_tokens", kTokens, LabelScores::kSoftmax, numbered(5)},
        Classifier{"electra_texts", kTexts, LabelScores::kSoftmax, numbered(3)},
        Classifier{"electra_tokens", kTokens, LabelScores::kSoftmax, numbered(5)},
        Classifier{"electra_replaced", kTokens, LabelScores::kSigmoid, {"replaced"}},
        Classifier{"mpnet_texts", kTexts, LabelScores::kSoftmax, numbered(3)},
        Classifier{
            "deberta_texts", kTexts, LabelScores::kSoftmax, {"entailment", "neutral", "contradiction"}},
        Classifier{"deberta_tokens", kTokens, LabelScores::kSoftmax, numbered(5)},
        Classifier{"mpnet_tokens", kTokens, LabelScores::kSoftmax, numbered(2)},
        Classifier{"nomic_bert_texts", kTexts, LabelScores::kSoftmax, numbered(3)},
        Classifier{"nomic_bert_tokens", kTokens, LabelScores::kSoftmax, numbered(5)},
        Classifier{"modernbert_first", kTexts, LabelScores::kSoftmax, numbered(3)},
        Classifier{"modernbert_mean", kTexts, LabelScores::kSoftmax, numbered(5)},
        Classifier{"modernbert_tokens", kTokens, LabelScores::kSoftmax, numbered(5)},
        Classifier{"llama_pairs", kTexts, LabelScores::kSoftmax, {"entailment", "neutral", "contradiction"}},
        Classifier{"llama_reward", kTexts, LabelScores::kLogits, numbered(1)},
        Classifier{"llama_tokens", kTokens, LabelScores::kSoftmax, numbered(7)},
        Classifier{"llama_tokens_no_bias", kTokens, LabelScores::kSoftmax, numbered(2)},
        Classifier{"mistral_texts", kTexts, LabelScores::kSoftmax, numbered(5)},
        Classifier{"qwen2_tokens", kTokens, LabelScores::kSoftmax, {"O", "B-PER", "I-PER"}},
        Classifier{"qwen3_ranker", kTexts, LabelScores::kSigmoid, numbered(1)},
        Classifier{"gemma2_tokens", kTokens, LabelScores::kSoftmax, numbered(3)},
        Classifier{"gemma3_texts", kTexts, LabelScores::kSigmoid, {"joy", "anger", "fear", "love"}},
        Classifier{"gemma3_both_sides", kTexts, LabelScores::kSoftmax, numbered(3)},
        Classifier{"phi_tokens", kTokens, LabelScores::kSoftmax, numbered(3)},
        Classifier{"phi3_texts", kTexts, LabelScores::kSoftmax, numbered(2)},
        Classifier{"olmo2_texts", kTexts, LabelScores::kSoftmax, numbered(3)},
        Classifier{"smollm3_texts", kTexts, LabelScores::kSoftmax, numbered(3)},
        Classifier{"gpt2_texts", kTexts, LabelScores::kSoftmax, {"NEGATIVE", "POSITIVE"}},
        Classifier{"gpt2_words", kTokens, LabelScores::kSoftmax, {"O", "B-PER", "I-PER"}},
        Classifier{"gpt_neo_texts", kTexts, LabelScores::kSoftmax, numbered(3)},
        Classifier{"gpt_neo_tokens", kTokens, LabelScores::kSoftmax, numbered(2)},
        Classifier{"gpt_neox_texts", kTexts, LabelScores::kSoftmax, numbered(3)},
        Classifier{"gpt_neox_tokens", kTokens, LabelScores::kSoftmax, numbered(2)},
        Classifier{"t5_tokens", kTokens, LabelScores::kSoftmax, {"O", "B-PER", "I-PER"}},
        Classifier{"mt5_tokens", kTokens, LabelScores::kSoftmax, numbered(2)},
        Classifier{"umt5_tokens", kTokens, LabelScores::kSoftmax, numbered(5)},
        Classifier{"bart_pairs", kTexts, LabelScores::kSoftmax, {"contradiction", "neutral", "entailment"}},
        Classifier{"mbart_texts", kTexts, LabelScores::kSoftmax, numbered(2)},
        Classifier{"t5_texts", kTexts, LabelScores::kSoftmax, numbered(3)},
        Classifier{"mt5_texts", kTexts, LabelScores::kLogits, numbered(1)},
        Classifier{"umt5_texts", kTexts, LabelScores::kSoftmax, numbered(5)},
        Classifier{"opt_texts", kTexts, LabelScores::kSoftmax, numbered(3)}),
    [](const auto& one) { return std::string(one.param.name); });

/// A folder of `name` whose config.json has other fields.
fs::path with_config(const test::ScratchFolder& scratch, const nlohmann::json& fields,
                     const char* name = "bert_pairs") {
  const fs::path from = fs::path(goldens_folder()) / "labels" / name;
  nlohmann::json config = nlohmann::json::parse(read_file(from / "config.json"));
  config.merge_patch(fields);
  fs::create_directory(scratch / "model");
  write_file_atomically(scratch / "model" / "config.json", config.dump());
  fs::copy(from / "model.safetensors", scratch / "model" / "model.safetensors");
  return scratch / "model";
}

TEST(LabelsOfConfig, ThatDisagreeWithTheWeightsAreRefused) {
  const test::ScratchFolder scratch;
  const fs::path folder = with_config(scratch, {{"id2label", {{"3", "odd"}}}});
  EXPECT_THAT(
      [&] { load_model_folder(folder); },
      ThrowsMessage<FormatError>(HasSubstr("shape of classifier.weight: expected [4,14], got [3,14]")));
}

TEST(LabelsOfConfig, WithoutNamesAreRefused) {
  const test::ScratchFolder scratch;
  const fs::path folder = with_config(scratch, {{"id2label", {{"1", nullptr}}}});
  EXPECT_THAT([&] { load_model_folder(folder); },
              ThrowsMessage<FormatError>(
                  HasSubstr("id2label has 2 labels and no name for label 1; expected the names of 0 to 1")));
}

TEST(LabelsOfConfig, OfAnotherNumberAreRefused) {
  const test::ScratchFolder scratch;
  const fs::path folder = with_config(scratch, {{"num_labels", 5}});
  EXPECT_THAT([&] { load_model_folder(folder); },
              ThrowsMessage<FormatError>(HasSubstr("id2label has 3 labels, and num_labels says 5")));
}

TEST(LabelsOfConfig, AreThoseOfTheirNamesWhateverOlderVersionsWrote) {
  const test::ScratchFolder scratch;
  const ModelFolder folder =
      load_model_folder(with_config(scratch, {{"_num_labels", 2}, {"output_past", true}}));
  EXPECT_EQ(folder.remark(), "");
  EXPECT_EQ(folder.labels->names.size(), 3u);
}

TEST(LabelsOfConfig, SayHowTheyAreScored) {
  const auto scores = [](const nlohmann::json& fields) {
    const test::ScratchFolder scratch;
    const ModelFolder folder = load_model_folder(with_config(scratch, fields));
    EXPECT_EQ(folder.remark(), "");
    return folder.labels->scores;
  };
  EXPECT_EQ(scores({{"problem_type", "multi_label_classification"}}), LabelScores::kSigmoid);
  EXPECT_EQ(scores({{"sbert_ce_default_activation_function", "torch.nn.modules.linear.Identity"}}),
            LabelScores::kLogits);
  EXPECT_EQ(scores({{"sentence_transformers", {{"activation_fn", "torch.nn.modules.activation.Sigmoid"}}}}),
            LabelScores::kSigmoid);
  EXPECT_THAT(
      [&] {
        scores({{"problem_type", "ranking"}});
      },
      ThrowsMessage<FormatError>(
          HasSubstr("problem_type is \"ranking\"; expected single_label_classification")));
  EXPECT_THAT(
      [&] {
        scores({{"sentence_transformers", {{"activation_fn", "torch.nn.Tanh"}}}});
      },
      ThrowsMessage<FormatError>(HasSubstr("expected torch's Identity or Sigmoid")));
}

TEST(LabelsOfConfig, OfAnotherClassAreLeftInTheFile) {
  const test::ScratchFolder scratch;
  const ModelFolder folder =
      load_model_folder(with_config(scratch, {{"architectures", {"BertForMultipleChoice"}}}));
  EXPECT_FALSE(folder.labels);
  EXPECT_EQ(folder.model->label_head(), nullptr);
  EXPECT_THAT(folder.not_read, ElementsAre("classifier.bias", "classifier.weight"));
  Tape tape;
  Context context{.tape = tape};
  EXPECT_THAT([&] { folder.model->label_logits(context, {}, {}); },
              ThrowsMessage<UsageError>(HasSubstr("gives no labels")));
}

std::vector<float> label_logits(const Model& model, const std::vector<std::vector<int32_t>>& texts) {
  const Batch batch(texts);
  Tape tape;
  Context context{.tape = tape};
  const ConstMatrixView found =
      model.label_logits(context, model.read(context, batch.view(), {}), batch.view()).value();
  return {found.row(0), found.row(0) + found.rows * found.cols};
}

TEST(LabelsOfADecoder, AreReadAtTheLastTokenThatIsNoPaddingToken) {
  const ModelFolder folder = load_model_folder(fs::path(goldens_folder()) / "labels" / "llama_pairs");
  const Model& model = *folder.model;
  EXPECT_EQ(model.facts().pad_id, 1);
  EXPECT_EQ(label_logits(model, {{5, 7, 9, 1, 1}}), label_logits(model, {{5, 7, 9}}));
  EXPECT_EQ(label_logits(model, {{5, 1, 9}, {5, 1}}), label_logits(model, {{5, 1, 9, 1}, {5}}));
  EXPECT_EQ(label_logits(model, {{1, 1, 1}}), label_logits(model, {{1}}));
  EXPECT_NE(label_logits(model, {{5, 7, 9}}), label_logits(model, {{5, 7}}));
  EXPECT_THAT(
      [&] {
        label_logits(model, {{5, 7}, {}});
      },
      ThrowsMessage<UsageError>(HasSubstr("sequence 2 has no tokens")));
}

TEST(LabelsOfADecoder, StandInThePlaceOfItsOutputLayer) {
  const ModelFolder folder = load_model_folder(fs::path(goldens_folder()) / "labels" / "qwen2_tokens");
  EXPECT_FALSE(folder.model->predicts());  // though its config.json ties an output layer
  EXPECT_EQ(folder.model->sites().back().name, "decoder.token_labels");
  EXPECT_THAT([&] { folder.model->vocabulary(); },
              ThrowsMessage<UsageError>(HasSubstr("a classifier: it gives labels")));
  EXPECT_THAT(
      [&] { folder.language_model(); },
      ThrowsMessage<UsageError>(HasSubstr("predicts no next token but gives labels (multihead classify)")));
}

TEST(LabelsOfADecoder, OfAnotherClassAreLeftInTheFile) {
  const test::ScratchFolder scratch;
  const ModelFolder folder =
      load_model_folder(with_config(scratch, {{"architectures", {"LlamaModel"}}}, "llama_pairs"));
  EXPECT_FALSE(folder.labels);
  EXPECT_THAT(folder.not_read, ElementsAre("score.weight"));
}

TEST(LabelsOfADecoder, ThatDisagreeWithTheWeightsAreRefused) {
  const test::ScratchFolder scratch;
  const fs::path folder = with_config(scratch, {{"id2label", {{"3", "odd"}}}}, "llama_pairs");
  EXPECT_THAT([&] { load_model_folder(folder); },
              ThrowsMessage<FormatError>(HasSubstr("shape of score.weight: expected [4,20], got [3,20]")));
}

TEST(LabelsOfADecoder, NeedTheBiasUnlessConfigSaysThereIsNone) {
  const test::ScratchFolder scratch;
  const fs::path folder = with_config(scratch, {{"token_classification_bias", true}}, "llama_tokens_no_bias");
  EXPECT_THAT([&] { load_model_folder(folder); }, ThrowsMessage<FormatError>(HasSubstr("score.bias")));
}

TEST(LabelsOfAnEncoderDecoder, AreReadAtTheLastEndTokenOfTheText) {
  const ModelFolder folder = load_model_folder(fs::path(goldens_folder()) / "labels" / "bart_pairs");
  const Model& model = *folder.model;
  EXPECT_EQ(model.kind(), ModelKind::kEncoder);
  EXPECT_EQ(label_logits(model, {{0, 5, 2, 7, 2}, {0, 9, 2}}).size(), 6u);
  EXPECT_NE(label_logits(model, {{0, 5, 2, 7, 2}}), label_logits(model, {{0, 5, 2, 7, 8}}));
  EXPECT_THAT(
      [&] {
        label_logits(model, {{0, 5, 7}});
      },
      ThrowsMessage<UsageError>(HasSubstr("a text has no end token (id 2)")));
  EXPECT_THAT([&] { folder.translator(); },
              ThrowsMessage<UsageError>(HasSubstr("predicts no next token but gives labels")));
  const test::ScratchFolder scratch;
  const ModelFolder other = load_model_folder(
      with_config(scratch, {{"id2label", {{"3", "odd"}}}, {"architectures", {"BartModel"}}}, "bart_pairs"));
  EXPECT_EQ(other.model->kind(), ModelKind::kTranslator);
  EXPECT_THAT(other.not_read, testing::SizeIs(4));
}

TEST(LabelsOfT5, StandOnItsEncoderAlone) {
  const ModelFolder folder = load_model_folder(fs::path(goldens_folder()) / "labels" / "t5_tokens");
  EXPECT_EQ(folder.model->kind(), ModelKind::kEncoder);
  EXPECT_EQ(folder.model->sites().back().name, "encoder.token_labels");
  const test::ScratchFolder scratch;
  const ModelFolder bare =
      load_model_folder(with_config(scratch, {{"architectures", {"T5EncoderModel"}}}, "t5_tokens"));
  EXPECT_EQ(bare.model->kind(), ModelKind::kEncoder);
  EXPECT_TRUE(bare.gives_vectors_alone());
  EXPECT_THAT(bare.not_read, ElementsAre("classifier.bias", "classifier.weight"));
}

TEST(LabelNumbers, AreFoundByNameAndNumber) {
  const Labels labels{.names = {"joy", "anger", "fear"}};
  EXPECT_EQ(labels.number_of("anger"), 1);
  EXPECT_EQ(labels.number_of("2"), 2);
  EXPECT_THAT(
      [&] { labels.number_of("angr"); },
      ThrowsMessage<UsageError>("there is no label 'angr'; there are joy, anger, fear; did you mean anger?"));
}

}  // namespace
}  // namespace mh
