// A small classifier that was trained on the grammar to say whether a sentence is negated (tests/oracles/trained_classifier.py):
// attribution names the words that it was trained to see, and importance the heads that carry them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/attribution/heads_attribution.h"
#include "multihead/heads/importance/heads_importance.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/tasks/classify_text.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

struct Sentence {
  std::string text, label;
  std::vector<size_t> words;  // the places of not, no and never
};

std::vector<Sentence> sentences() {
  std::vector<Sentence> all;
  for (const auto& row : nlohmann::json::parse(read_file(kGoldens / "labels" / "negated.sentences.json")))
    all.push_back({row["text"], row["label"], row["words"]});
  return all;
}

/// How many sentences get their label.
int64_t right_labels(const ModelFolder& folder, const std::vector<Sentence>& all, Sites* sites = nullptr) {
  std::vector<std::string> texts;
  for (const Sentence& one : all) texts.push_back(one.text);
  const std::vector<LabelledText> found = classify_text(folder, texts, {.sites = sites});
  int64_t right = 0;
  for (size_t i = 0; i < all.size(); ++i)
    right += folder.labels->names[static_cast<size_t>(found[i].rows[0].best_first()[0])] == all[i].label;
  return right;
}

TEST(TrainedClassifier, AttributionNamesTheWordsOfALabel) {
  const ModelFolder folder = load_model_folder(kGoldens / "labels" / "negated");
  const std::vector<Sentence> all = sentences();
  EXPECT_EQ(right_labels(folder, all), std::ssize(all));
  // Value zeroing does not: a normed row stays alike where one word of many is gone.
  const std::vector<AttributionMethod> methods = {AttributionMethod::kRollout, AttributionMethod::kRelevance,
                                                  AttributionMethod::kGradientTimesInput,
                                                  AttributionMethod::kIntegratedGradients};
  std::vector<int64_t> named(methods.size());
  int64_t negated = 0;
  for (const Sentence& sentence : all) {
    if (sentence.words.empty()) continue;
    ++negated;
    const AttributionReport found =
        heads_attribution(folder, sentence.text, {.methods = methods, .label = "negated"});
    for (size_t m = 0; m < methods.size(); ++m) {
      const std::vector<double>& scores = found.of(methods[m]);  // [CLS], a token for each word, [SEP]
      const auto best = std::max_element(scores.begin() + 1, scores.end() - 1) - scores.begin() - 1;
      named[m] += std::count(sentence.words.begin(), sentence.words.end(), static_cast<size_t>(best));
    }
  }
  EXPECT_EQ(negated, 30);
  EXPECT_THAT(named, testing::Each(testing::Ge(27)));
}

TEST(TrainedClassifier, AttributionsAreMoreFaithfulThanChance) {
  const ModelFolder folder = load_model_folder(kGoldens / "labels" / "negated");
  HeadsText text;
  for (const Sentence& one : sentences()) {
    if (!one.words.empty()) text.sources.push_back(one.text);
  }
  TextCorpus corpus(text);
  const Faithfulness found = faithfulness(
      folder, corpus,
      {.attribution = {.methods = {AttributionMethod::kIntegratedGradients}, .label = "negated"}});
  EXPECT_EQ(found.sentences, 30);
  EXPECT_GT(found.methods[0].deletion_gain.low(), 0);
  EXPECT_GT(found.methods[0].insertion_gain.low(), 0);
}

/// How many negated sentences are still called so without `count` of the heads, from the first or from the last of a ranking.
int64_t right_without(const ScoredModel& model, const std::vector<Sentence>& negated,
                      std::vector<HeadImportance> heads, size_t count, bool from_last) {
  if (from_last) std::reverse(heads.begin(), heads.end());
  SiteValues muted;
  for (size_t i = 0; i < count; ++i) muted.mute(heads[i].name.name());
  return right_labels(model.folder(), negated, &muted);
}

TEST(TrainedClassifier, ImportanceNamesTheHeadThatIsEnough) {
  const ScoredModel model = load_scored_model(kGoldens / "labels" / "negated");
  HeadsText text;
  std::vector<Sentence> negated;
  for (const Sentence& one : sentences()) {
    if (one.words.empty()) continue;
    text.sources.push_back(one.text);
    negated.push_back(one);
  }
  TextCorpus corpus(text);
  const std::vector<HeadImportance> ranked =
      heads_importance(model, corpus,
                       {.measure = ImportanceMeasure::kAblation, .texts = {.label = "negated"}})
          .heads;
  ASSERT_EQ(ranked.size(), 4u);
  EXPECT_EQ(ranked[0].name.name(), "encoder.0.self_attention.1");
  EXPECT_EQ(right_without(model, negated, ranked, 0, false), 30);
  EXPECT_GE(right_without(model, negated, ranked, 3, true), 27) << "the head of rank 1 alone";
  EXPECT_LE(right_without(model, negated, ranked, 3, false), 3) << "the head of rank 4 alone";
}

TEST(TrainedClassifier, PatchingNamesTheHeadThatCarriesTheWord) {
  const ModelFolder folder = load_model_folder(kGoldens / "labels" / "negated");
  const PatchQuestion question{.clean = "the dog never sees the cat .",
                               .corrupt = "the dog sometimes sees the cat .",
                               .answer = "negated",
                               .wrong = "plain"};
  const PatchReport found = heads_patch(folder, question);
  EXPECT_EQ(found.score, PatchScore::kLogit);
  const auto logits = [&](const std::string& text) {
    return classify_text(folder, {text})[0].rows[0].logits;
  };
  const std::vector<float> clean = logits(question.clean), corrupt = logits(question.corrupt);
  EXPECT_FLOAT_EQ(static_cast<float>(found.clean.answer), clean[1]);
  EXPECT_FLOAT_EQ(static_cast<float>(found.clean.wrong), clean[0]);
  EXPECT_FLOAT_EQ(static_cast<float>(found.corrupt.answer), corrupt[1]);
  EXPECT_GT(clean[1] - clean[0], 1);
  EXPECT_LT(corrupt[1] - corrupt[0], -1);
  // Each of several heads is enough by itself, so that one alone brings little back.
  EXPECT_EQ(found.strongest(1)[0]->name, "encoder.0.self_attention.1");
  EXPECT_GT(found.strongest(1)[0]->restored, 0.02);
  const PatchReport stream = heads_patch(folder, question, {.part = PatchedPart::kStream});
  EXPECT_NEAR(stream.values.front().restored, 1, 1e-4) << "all that the first layer reads";
  const auto refused = [&](const PatchQuestion& other, const char* folder_name, const char* part) {
    const ModelFolder model = load_model_folder(kGoldens / "labels" / folder_name);
    EXPECT_THAT([&] { heads_patch(model, other); },
                testing::ThrowsMessage<UsageError>(testing::HasSubstr(part)));
  };
  PatchQuestion other = question;
  other.wrong = "negated";
  refused(other, "negated", "are the same label, negated");
  other.wrong = "odd";
  refused(other, "negated", "there is no label 'odd'; there are plain, negated");
  for (const char* tokens : {"bert_words", "gpt2_words"})
    refused({.clean = "the cat", .corrupt = "a cat", .answer = "O", .wrong = "B-PER"}, tokens,
            "gives labels to tokens");
}

// Its decoder reads the text shifted by one token: row i stands before token i.
TEST(EncoderDecoderThatClassifies, ShowsWhatBothStacksRead) {
  const ModelFolder folder = load_model_folder(kGoldens / "labels" / "bart_pairs");
  const Observation seen = observe_text(folder, "two dogs", {}, {.keep = {"decoder.labels", "*.weights.*"}});
  const std::vector<std::string> read = {"<s>", "two", "dogs", "</s>"},
                                 shifted = {"<start>", "<s>", "two", "dogs"};
  EXPECT_EQ(seen.query_labels(AttentionKind::kEncoderSelf), read);
  EXPECT_EQ(seen.query_labels(AttentionKind::kDecoderSelf), shifted);
  EXPECT_EQ(seen.query_labels(AttentionKind::kCross), read);
  EXPECT_EQ(seen.key_labels(AttentionKind::kCross), read);
  EXPECT_EQ(seen.weights({"decoder.2.cross_attention", 6}).rows, 4);
  EXPECT_EQ(seen.value("decoder.labels").cols(), 3);
}

TEST(EncoderDecoderThatClassifies, IsExplainedByBothCopiesOfTheText) {
  const ModelFolder folder = load_model_folder(kGoldens / "labels" / "bart_pairs");
  const AttributionReport found = heads_attribution(folder, "two dogs", {.label = "neutral", .steps = 100});
  const std::vector<float> logits = classify_text(folder, {"two dogs"})[0].rows[0].logits;
  EXPECT_NEAR(found.score, logits[1], 1e-6);
  ASSERT_EQ(found.tokens.size(), 8u);
  const std::vector<bool> kept = {true, false, false, true, true, true, false, false};
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(found.tokens[i].kept, kept[i]) << i;
    EXPECT_EQ(found.tokens[i].side, i < 4 ? TokenSide::kSource : TokenSide::kTarget);
  }
  double sum = 0;
  for (const double score : found.of(AttributionMethod::kIntegratedGradients)) sum += score;
  EXPECT_NEAR(sum, found.score - found.replaced_score, 1e-3);
}

TEST(EncoderDecoderThatClassifies, IsPatchedInBothStacks) {
  const ModelFolder folder = load_model_folder(kGoldens / "labels" / "bart_pairs");
  const PatchQuestion question{
      .clean = "two dogs run", .corrupt = "the dogs run", .answer = "neutral", .wrong = "entailment"};
  const PatchReport found =
      heads_patch(folder, question, {.part = PatchedPart::kStream, .by_position = true});
  EXPECT_EQ(found.clean_text("encoder").labels[1], "two");
  EXPECT_EQ(found.clean_text("decoder").labels[2], "two");
  EXPECT_EQ(found.corrupt_text("decoder").labels[2], "the");
  const auto last = static_cast<int32_t>(found.texts.clean.ids.size()) - 1;
  for (const PatchedValue& value : found.values) {
    if (value.place.stack != "decoder" || value.place.layer != 3) continue;
    EXPECT_NEAR(value.restored, value.place.position == last ? 1 : 0, 1e-3) << value.name;
  }
}

TEST(DecoderThatClassifies, ShowsItsTokensAsDecodersDo) {
  const ModelFolder folder = load_model_folder(kGoldens / "labels" / "llama_pairs");
  const Observation seen = observe_text(folder, "two dogs run", {}, {.keep = {"decoder.labels"}});
  const std::vector<std::string> tokens = {"<s>", "two", "dogs", "run"};
  EXPECT_EQ(seen.query_labels(AttentionKind::kDecoderSelf), tokens);
  EXPECT_EQ(seen.key_labels(AttentionKind::kDecoderSelf), tokens);
  EXPECT_EQ(seen.value("decoder.labels").cols(), 3);
}

// The word that differs is the second token, and the last row alone says the label.
TEST(DecoderThatClassifies, IsPatchedByItsLastRow) {
  const ModelFolder folder = load_model_folder(kGoldens / "labels" / "llama_pairs");
  const PatchQuestion question{
      .clean = "two dogs run", .corrupt = "the dogs run", .answer = "neutral", .wrong = "contradiction"};
  const PatchReport found =
      heads_patch(folder, question, {.part = PatchedPart::kStream, .by_position = true});
  EXPECT_EQ(found.score, PatchScore::kLogit);
  const std::vector<float> clean = classify_text(folder, {question.clean})[0].rows[0].logits;
  EXPECT_FLOAT_EQ(static_cast<float>(found.clean.answer), clean[1]);
  EXPECT_FLOAT_EQ(static_cast<float>(found.clean.wrong), clean[2]);
  const auto last = static_cast<int32_t>(found.texts.clean.ids.size()) - 1;
  for (const PatchedValue& value : found.values) {
    if (value.place.layer == 1) continue;
    const int32_t position = value.place.layer == 0 ? 1 : last;
    EXPECT_NEAR(value.restored, value.place.position == position ? 1 : 0, 1e-4) << value.name;
  }
}

}  // namespace
}  // namespace mh
