#include "multihead/heads/measures/inspect_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "lab/grammar/grammar.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/heads/reports/attention_file.h"
#include "multihead/heads/reports/pictures/draw_heads.h"
#include "multihead/heads/sites/text_pass.h"
#include "multihead/io/npy.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/tasks/translate_text.h"
#include "multihead/text/train_tokenizer.h"
#include "tests/support/overflow.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

// A random model over a small grammar corpus; pieces are shorter than words.
class InspectHeads : public testing::Test {
 protected:
  InspectHeads() {
    const GrammarCorpus corpus =
        make_grammar_corpus({.train = 40, .valid = 1, .test = 17, .compositional = 2});
    std::vector<std::string> lines;
    for (const GrammarSentence& sentence : corpus.test) {
      text.sources.push_back(text_of(sentence.source));
      text.targets.push_back(text_of(sentence.target));
      text.source_trees.push_back(sentence.source);
      text.target_trees.push_back(sentence.target);
      text.alignments.push_back(sentence.alignment);
      lines.push_back(text.sources.back());
      lines.push_back(text.targets.back());
    }
    folder.tokenizer = train_bpe(lines, {.vocabulary_size = 120});
    TranslatorShape shape;
    shape.vocabulary_size = folder.tokenizer->size();
    shape.d_model = 12;
    shape.encoder_layers = 2;
    shape.decoder_layers = 1;
    shape.encoder_heads = 3;
    shape.decoder_heads = 2;
    shape.encoder_ff = shape.decoder_ff = 13;
    shape.max_positions = 97;
    shape.eos_id = kEndId;
    shape.pad_id = shape.decoder_start_id = kPadId;
    folder.model = std::make_unique<EncoderDecoder>(shape.config());
    folder.translator().initialise(5);
  }
  ModelFolder folder;
  HeadsText text;
};

// Damaged weights of one attention are enough, whether or not a decoder runs.
TEST_F(InspectHeads, WeightsThatAreNotFiniteAreAnError) {
  EXPECT_NO_THROW(inspect_heads(folder, text));
  const auto not_finite =
      testing::ThrowsMessage<Error>(testing::HasSubstr("are not finite numbers; its weights may be damaged"));
  HeadsText sources;
  sources.sources = text.sources;
  for (const float sign : {-1.0f, 1.0f}) {
    test::overflow_scores(*folder.model, "encoder.0.self_attention", sign);
    EXPECT_THAT([&] { inspect_heads(folder, text); }, not_finite);
    EXPECT_THAT([&] { inspect_heads(folder, sources); }, not_finite);
    EXPECT_THAT([&] { observe_text(folder, text.sources[0]); }, not_finite);
    EXPECT_THAT([&] { observe_text(folder, text.sources[0], text.targets[0]); }, not_finite);
  }
}

TEST_F(InspectHeads, ScoresEveryHeadOnGivenGold) {
  const HeadReport report = inspect_heads(folder, text);
  EXPECT_EQ(report.sentences, 17);
  EXPECT_EQ(report.targets, TargetsRead::kGiven);
  EXPECT_EQ(report.heads.size(), 2u * 3 + 2 + 2);
  EXPECT_EQ(report.similarities.size(), 4u);
  EXPECT_EQ(report.aligners.size(), 2u * (2 + 1));  // the mean of the heads too
  ASSERT_TRUE(report.alignment_baseline);
  int64_t nouns_with_articles = 0;
  for (const auto& tree : text.source_trees) {
    for (const Word& word : tree) nouns_with_articles += word.relation == "det";
  }
  bool seen = false;
  for (const RelationScore& score : report.relations) {
    EXPECT_LE(score.found, score.support) << score.name() << " " << score.relation;
    EXPECT_LE(score.found_at_offset, score.support);
    if (score.relation == "det" && score.direction == Direction::kToHead &&
        score.attention == "encoder.0.self_attention") {
      EXPECT_EQ(score.support, nouns_with_articles);
      seen = true;
    }
  }
  EXPECT_TRUE(seen);
}

TEST_F(InspectHeads, TranslatesWhereNoTargetsAreGivenAndLeavesOutEmptyLines) {
  HeadsText plain{
      .sources = text.sources, .targets = {}, .source_trees = {}, .target_trees = {}, .alignments = {}};
  plain.sources.insert(plain.sources.begin() + 3, "  ");
  const HeadReport report = inspect_heads(folder, plain);
  EXPECT_EQ(report.targets, TargetsRead::kGreedy);
  EXPECT_EQ(report.sentences, 17);
  EXPECT_EQ(report.heads.size(), 2u * 3 + 2 + 2);
  EXPECT_TRUE(report.relations.empty());
}

TEST_F(InspectHeads, RefusesGoldThatDoesNotFit) {
  HeadsText wrong = text;
  wrong.alignments.pop_back();
  EXPECT_THROW(inspect_heads(folder, wrong), UsageError);
  wrong = text;
  wrong.targets.clear();
  EXPECT_THROW(inspect_heads(folder, wrong), UsageError);
  wrong = text;
  wrong.alignments[2].push_back({0, 99});
  EXPECT_THROW(inspect_heads(folder, wrong), FormatError);
  wrong = text;
  std::swap(wrong.source_trees[0], wrong.source_trees[1]);
  EXPECT_THROW(inspect_heads(folder, wrong), FormatError);
}

TEST_F(InspectHeads, KeepsASentencesWeightsWithLabelsForEachRowAndColumn) {
  const Observation sentence = observe_text(folder, text.sources[0], text.targets[0]);
  ASSERT_EQ(sentence.attentions.size(), 4u);
  for (const auto& [attention, heads, place] : sentence.attentions) {
    const AttentionKind kind = place.kind;
    ASSERT_EQ(heads, kind == AttentionKind::kEncoderSelf ? 3 : 2);
    const ConstMatrixView weights = sentence.weights({attention, heads - 1});
    EXPECT_EQ(weights.rows, static_cast<int64_t>(sentence.query_labels(kind).size()));
    EXPECT_EQ(weights.cols, static_cast<int64_t>(sentence.key_labels(kind).size()));
  }
  EXPECT_EQ(sentence.source.tokens.back(), "</s>");
  EXPECT_EQ(sentence.predicted.tokens.back(), "</s>");
  const auto telling = most_focused_heads(sentence);
  ASSERT_EQ(telling.size(), 3u);
  EXPECT_EQ(telling[2].attention, "decoder.0.cross_attention");

  const Observation made = observe_text(folder, text.sources[0]);
  EXPECT_EQ(made.targets, TargetsRead::kGreedy);
}

TEST_F(InspectHeads, ObservesWhatIsAskedForWithThePlacesOfTokens) {
  const HeadName head{"encoder.1.self_attention", 2};
  const Observation seen = observe_text(folder, text.sources[0], text.targets[0],
                                        {.keep = {weights_site(head), "*.states", "decoder.logits"}});
  EXPECT_EQ(seen.weights(head).rows, static_cast<int64_t>(seen.source.ids.size()));
  EXPECT_THROW(seen.weights({"encoder.1.self_attention", 1}), UsageError);  // was not kept
  EXPECT_THROW(seen.weights({"encoder.7.self_attention", 1}), UsageError);
  EXPECT_EQ(seen.value("encoder.states").rows(), static_cast<int64_t>(seen.source.ids.size()));
  EXPECT_EQ(seen.value("decoder.logits").rows(), static_cast<int64_t>(seen.predicted.ids.size()));
  EXPECT_EQ(seen.value("decoder.logits").cols(), folder.translator().config().target_vocabulary());
  int32_t last = 0;
  for (size_t i = 0; i + 1 < seen.source.ids.size(); ++i) {
    const auto [begin, end] = seen.source.offsets[i];
    EXPECT_LE(last, begin);
    EXPECT_LT(begin, end);
    last = end;
  }
  EXPECT_EQ(last, static_cast<int32_t>(text.sources[0].size()));
  EXPECT_EQ(seen.source.offsets.back(), std::pair(0, 0)) << "the end token";
  EXPECT_EQ(seen.target.offsets.front(), std::pair(0, 0)) << "the start token";
  EXPECT_EQ(seen.target.offsets[1].first, 0);
  EXPECT_THROW(observe_text(folder, text.sources[0], {}, {.keep = {"encoder.9.output"}}), UsageError);
  SiteValues muted;
  muted.mute("encoder.1.self_attention.*");
  const Observation without =
      observe_text(folder, text.sources[0], text.targets[0], {.keep = {"*.states"}, .sites = &muted});
  EXPECT_NE(without.value("encoder.states")(0, 0), seen.value("encoder.states")(0, 0));
}

// What a pass finds probable is what scores say, and a gate's gradient is the slope of that.
TEST_F(InspectHeads, ATextPassIsScoredAndDifferentiated) {
  const Observation seen = observe_text(folder, text.sources[0], text.targets[0], {.keep = {}});
  SiteValues values;
  values.watch("*.gates");
  TextPass pass(*folder.model, seen, {.sites = &values, .mode = Tape::Mode::kRecordValues});
  const Var score = pass.log_probability();
  pass.tape().backward(score);
  const std::vector<double> scores = score_text(folder, {text.sources[0]}, {text.targets[0]});
  EXPECT_NEAR(static_cast<double>(score.value()(0, 0)), scores[0], 1e-4 * std::abs(scores[0]));
  const auto with_gate = [&](float gate) {
    SiteValues gated;
    gated.set_gate("encoder.1.self_attention.2", gate);
    TextPass changed(*folder.model, seen, {.sites = &gated});
    return static_cast<double>(changed.log_probability().value()(0, 0));
  };
  const double slope = (with_gate(1.01f) - with_gate(0.99f)) / 0.02;
  EXPECT_NEAR(static_cast<double>(values.gradient("encoder.1.self_attention.gates")(0, 2)), slope,
              0.02 * (0.01 + std::abs(slope)));
}

// The same remarks on a sentence as on lines: that it is cut, and which words are not known.
TEST_F(InspectHeads, TellsWhatItCutsAndDoesNotKnow) {
  std::string many;
  for (int i = 0; i < 97; ++i) many += text.sources[0] + " ";
  const std::string strange = "the \u6F22\u5B57 sees \u2603", unknown = "; the tokenizer does not know them";
  std::vector<std::string> remarks;
  const auto remark = [&](const std::string& line) { remarks.push_back(line); };
  HeadsText lines;
  lines.sources = {many, strange};
  lines.targets = {many, "the"};
  inspect_heads(folder, lines, {.remark = remark});
  ASSERT_EQ(remarks.size(), 3u);
  EXPECT_THAT(remarks[0], testing::StartsWith(
                              "1 of 2 source lines cut to the 97 tokens that the model reads, at its end; "));
  EXPECT_THAT(remarks[1], testing::AllOf(testing::HasSubstr("in 1 line, e.g. '\u6F22\u5B57', '\u2603'"),
                                         testing::EndsWith(unknown)));
  EXPECT_THAT(remarks[2], testing::StartsWith(
                              "1 of 2 target lines cut to the 97 tokens that the model reads, at its end; "));
  const std::string on_unknown = remarks[1];

  remarks.clear();
  observe_text(folder, many, many, {.remark = remark});
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_THAT(remarks[0],
              testing::ContainsRegex(
                  "^1 of 1 text cut to the 97 tokens that the model reads, at its end; text 1 has [0-9]+"));
  EXPECT_THAT(remarks[1], testing::StartsWith("1 of 1 target text cut to the 97 tokens"));
  remarks.clear();
  observe_text(folder, strange, "the", {.remark = remark});
  EXPECT_THAT(remarks, testing::ElementsAre(on_unknown));
  remarks.clear();
  observe_text(folder, text.sources[0], text.targets[0], {.remark = remark});
  EXPECT_THAT(remarks, testing::IsEmpty());
}

TEST_F(InspectHeads, DrawsHeadsOrAllOfThem) {
  const Observation sentence = observe_text(folder, text.sources[1], text.targets[1]);
  const std::vector<HeadName> heads{{"encoder.1.self_attention", 2}, {"decoder.0.cross_attention", 0}};
  const std::string picture = draw_heads(sentence, heads), all = draw_heads(sentence);
  EXPECT_THAT(picture, testing::HasSubstr(">encoder.1.self_attention.2<"));
  EXPECT_THAT(picture, testing::HasSubstr(">decoder.0.cross_attention.0<"));
  EXPECT_THAT(picture, testing::HasSubstr(">" + sentence.source.tokens[0] + "<"));
  for (const auto& [attention, heads_of_it, place] : sentence.attentions)
    EXPECT_THAT(all, testing::HasSubstr(">" + attention + "<"));
  EXPECT_THROW(draw_heads(sentence, {}), UsageError);
  const std::vector<HeadName> none{{"encoder.1.self_attention", 3}};
  EXPECT_THROW(draw_heads(sentence, none), UsageError);
}

TEST_F(InspectHeads, SavesAllWeightsAsTheyAre) {
  const test::ScratchFolder scratch;
  const Observation sentence = observe_text(folder, text.sources[1], text.targets[1]);
  save_attention(sentence, scratch / "weights.safetensors");
  const auto file = SafetensorsFile::open(scratch / "weights.safetensors");
  EXPECT_EQ(file.entries().size(), 4u + 2);
  const ConstMatrixView cross = sentence.weights({"decoder.0.cross_attention", 1});
  const auto rows = cross.rows, cols = cross.cols;
  EXPECT_THAT(file.shape("decoder.0.cross_attention.weights"), testing::ElementsAre(2, rows, cols));
  EXPECT_EQ(file.floats("decoder.0.cross_attention.weights")[static_cast<size_t>(rows * cols + 1)],
            cross(0, 1));
  EXPECT_EQ(file.integers("target_ids")[0], kPadId);

  save_attention(sentence, scratch / "weights");
  save_attention(sentence, scratch / "weights");  // replaces its own
  const NpyArray array =
      read_npy(read_file(scratch / "weights" / "decoder.0.cross_attention.weights.npy"), "npy");
  EXPECT_THAT(array.shape, testing::ElementsAre(2, rows, cols));
  write_file_atomically(scratch / "weights" / "letter.txt", "dear");
  EXPECT_THROW(save_attention(sentence, scratch / "weights"), FileError);
  EXPECT_EQ(read_file(scratch / "weights" / "letter.txt"), "dear");
}

// A model of one layer whose tokens are bytes, as GPT-2's: labels are text, tokens are as in the vocabulary.
TEST(InspectByteLevelText, LabelsAreTheTextOfTokens) {
  const auto path = std::filesystem::path(goldens_folder()) / "text" / "hf_byte_level.json";
  ModelFolder folder;
  folder.model_type = "gpt2";
  folder.tokenizer = Tokenizer::from_json(read_file(path), "hf_byte_level.json");
  CausalConfig config;
  config.embedding = {.vocabulary = folder.tokenizer->size(), .d_model = 6};
  config.positions = Positions::kLearned;
  config.max_positions = 11;
  config.stack = {.name = "decoder", .d_model = 6, .mask = StackMask::causal()};
  config.stack.layers.assign(1, {.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 7}});
  folder.model = std::make_unique<CausalModel>(config);
  const Observation seen = observe_text(folder, "the to \u6F22");
  using testing::ElementsAre;
  EXPECT_THAT(seen.target.tokens, ElementsAre("the", "\u0120to", "\u0120", "\u00E6", "\u00BC", "\u00A2"));
  const std::vector<std::string>& labels = seen.key_labels(AttentionKind::kDecoderSelf);
  EXPECT_THAT(labels, ElementsAre("the", "\u2581to", "\u2581", "<0xE6>", "<0xBC>", "<0xA2>"));
  EXPECT_EQ(seen.query_labels(AttentionKind::kDecoderSelf), labels);
  const std::vector<HeadName> heads{{"decoder.0.self_attention", 1}};
  const std::string picture = draw_heads(seen, heads);
  EXPECT_THAT(picture, testing::HasSubstr(">\u2581to<"));
  EXPECT_THAT(picture, testing::HasSubstr(">&lt;0xE6&gt;<"));
  EXPECT_THAT(picture, testing::Not(testing::HasSubstr("\u0120")));
  const test::ScratchFolder scratch;
  save_attention(seen, scratch / "weights");
  EXPECT_EQ(read_file(scratch / "weights" / "target_tokens.txt"),
            "the\n\u0120to\n\u0120\n\u00E6\n\u00BC\n\u00A2\n");
}

// Without a decoder that reads another text: here of zeros, so that a token attends to all it sees alike.
TEST(InspectOneText, CausalModelsReadItAlone) {
  ModelFolder folder;
  folder.model_type = "gpt2";
  const std::vector<std::string> lines{"a cat sees a dog", "", "a dog"};
  folder.tokenizer = train_bpe(lines, {.vocabulary_size = 30, .least_pair_count = 1});
  CausalConfig config;
  config.embedding = {.vocabulary = folder.tokenizer->size(), .d_model = 6};
  config.positions = Positions::kLearned;
  config.max_positions = 5;
  config.stack = {.name = "decoder", .d_model = 6, .mask = StackMask::causal()};
  config.stack.layers.assign(1, {.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 7}});
  folder.model = std::make_unique<CausalModel>(config);
  HeadsText text;
  text.sources = lines;
  std::vector<std::string> remarks;
  const HeadReport report =
      inspect_heads(folder, text, {.remark = [&](const std::string& line) { remarks.push_back(line); }});
  EXPECT_EQ(report.sentences, 2);
  EXPECT_EQ(report.targets, TargetsRead::kNone);
  EXPECT_EQ(report.heads.size(), 3u);
  EXPECT_THAT(remarks,
              testing::ElementsAre(
                  "1 of 2 lines cut to the 5 tokens that the model reads, at its end; line 1 has 6 tokens"));
  const Observation seen = observe_text(folder, "a dog");
  ASSERT_EQ(seen.target.tokens.size(), 3u);
  EXPECT_EQ(seen.target.tokens.back(), "</s>");
  EXPECT_TRUE(seen.source.tokens.empty());
  EXPECT_NEAR(seen.weights({"decoder.0.self_attention", 2})(2, 0), 1 / 3.0, 1e-6);
  EXPECT_EQ(seen.weights({"decoder.0.self_attention", 2})(0, 1), 0);
  EXPECT_EQ(most_focused_heads(seen).size(), 1u);
  EXPECT_THROW(observe_text(folder, "a dog", "ein Hund"), UsageError);
  text.source_trees.resize(3);
  EXPECT_THROW(inspect_heads(folder, text), Error);
  const auto word = [](const char* form, int head, const char* relation) {
    Word made;
    made.form = form, made.head = head, made.relation = relation;
    return made;
  };
  text.source_trees[0] = {word("a", 1, "det"), word("cat", 2, "nsubj"), word("sees", -1, "root"),
                          word("a", 4, "det"), word("dog", 2, "obj")};
  text.source_trees[2] = {word("a", 1, "det"), word("dog", -1, "root")};
  const HeadReport with_trees = inspect_heads(folder, text);
  EXPECT_EQ(with_trees.relations.size(), 3u * 5);  // det and nsubj in two directions, obj in one
  for (const RelationScore& score : with_trees.relations) {
    EXPECT_EQ(score.attention, "decoder.0.self_attention");
    EXPECT_EQ(score.relation == "obj", score.direction == Direction::kToHead)
        << "the others' heads come later";
  }
}

}  // namespace
}  // namespace mh
