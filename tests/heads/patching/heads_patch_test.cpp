// Activation patching beside whole passes of the model with the values put at sites.
#include "multihead/heads/patching/heads_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/tasks/embed_text.h"
#include "tests/heads/patching/patch_families.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using namespace test;

constexpr double kPrunedRounding = 2e-5;  // of float32 scores of a few units

void expect_as_whole_passes(const ModelFolder& folder, const PatchQuestion& question) {
  for (const auto& [name, part] : kPatchedPartNames) {
    for (const bool by_position : {false, true}) {
      SCOPED_TRACE(std::string(name) + (by_position ? " by position" : ""));
      const PatchReport patching =
          heads_patch(folder, question, {.part = part, .by_position = by_position, .max_batch_tokens = 23});
      SiteValues clean;
      clean.keep("*");
      const double of_clean = whole_score(folder, patching.texts, patching.texts.clean, &clean),
                   of_corrupt = whole_score(folder, patching.texts, patching.texts.corrupt, nullptr);
      EXPECT_NEAR(patching.clean.score(), of_clean, kPrunedRounding);
      EXPECT_NEAR(patching.corrupt.score(), of_corrupt, kPrunedRounding);
      ASSERT_GT(std::abs(of_clean - of_corrupt), 0.01) << "take other texts";
      std::set<double> different;
      for (const PatchedValue& value : patching.values) {
        SiteValues put;
        put_clean(clean, value, part, heads_of(*folder.model, value.place.attention), put);
        const double score = whole_score(folder, patching.texts, patching.texts.corrupt, &put);
        EXPECT_NEAR(value.scores.score(), score, kPrunedRounding) << value.name;
        EXPECT_NEAR(value.restored, (score - of_corrupt) / (of_clean - of_corrupt),
                    4 * kPrunedRounding / std::abs(of_clean - of_corrupt))
            << value.name;
        different.insert(std::round(1000 * value.restored));
      }
      if (by_position || part != PatchedPart::kStream) {
        EXPECT_GT(different.size(), 3u);
      }
    }
  }
}

TEST(Patch, OfACausalModelIsAsWholePasses) {
  expect_as_whole_passes(causal_folder(), kContinued);
}
TEST(Patch, OfGroupedQueriesAndRotaryPositionsIsAsWholePasses) {
  expect_as_whole_passes(llama_folder(), kContinued);
}
TEST(Patch, OfAnEncoderIsAsWholePasses) {
  expect_as_whole_passes(bert_folder(), kMasked);
}
TEST(Patch, OfAnEncoderWithNormsBeforeIsAsWholePasses) {
  expect_as_whole_passes(modern_bert_folder(), kMasked);
}
TEST(Patch, OfATranslatorIsAsWholePasses) {
  expect_as_whole_passes(translator_folder(), kTranslated);
}

TEST(Patch, HasEveryHeadLayerAndPositionOnce) {
  const ModelFolder folder = translator_folder();
  const auto count = [&](PatchedPart part, bool by_position) {
    std::set<std::pair<std::string, std::optional<int32_t>>> places;
    const PatchReport patching = heads_patch(folder, kTranslated, {.part = part, .by_position = by_position});
    for (const PatchedValue& value : patching.values) places.insert({value.name, value.place.position});
    EXPECT_EQ(places.size(), patching.values.size());
    return places.size();
  };
  EXPECT_EQ(count(PatchedPart::kHeads, false), 2u * 2 + 3u * 3 * 2);
  EXPECT_EQ(count(PatchedPart::kPattern, true), 2u * 2 * 5 + 3u * 3 * 2 * 3)
      << "5 source tokens, 3 of the target";
  EXPECT_EQ(count(PatchedPart::kStream, true), 3u * 5 + 4u * 3);
  EXPECT_EQ(count(PatchedPart::kStream, false), 3u + 4u);
}

TEST(Patch, AllOfAStreamRestoresAll) {
  for (const auto& [folder, question] :
       {std::pair(&causal_folder, kContinued), std::pair(&bert_folder, kMasked)}) {
    const ModelFolder model = folder();
    for (const PatchedValue& value : heads_patch(model, question, {.part = PatchedPart::kStream}).values)
      EXPECT_NEAR(value.restored, 1, 1e-5) << value.name;
  }
  const ModelFolder translator = translator_folder();
  const PatchReport patching = heads_patch(translator, kTranslated, {.part = PatchedPart::kStream});
  for (const PatchedValue& value : patching.values) {
    if (value.place.stack == "encoder" || value.name == "decoder.2.output") {
      EXPECT_NEAR(value.restored, 1, 1e-5) << value.name;
    } else if (value.name == "decoder.0.input") {
      EXPECT_NEAR(value.restored, 0, 1e-5) << "the decoder reads the same prefix in both runs";
    } else {
      EXPECT_GT(std::abs(value.restored - 1), 1e-3) << "later layers read the corrupt source";
    }
  }
}

TEST(Patch, AtPositionsAndLayersThatAreNotReadNothingIsRestored) {
  const ModelFolder folder = causal_folder();
  const PatchReport stream =
      heads_patch(folder, kContinued, {.part = PatchedPart::kStream, .by_position = true});
  for (const PatchedValue& value : stream.values) {
    const bool last = *value.place.position == stream.texts.predicting;
    if (value.name == "decoder.2.output") {
      EXPECT_NEAR(value.restored, last ? 1 : 0, 1e-5);
    }
    if (value.name == "decoder.0.input" && (*value.place.position == 0 || last)) {
      EXPECT_NEAR(value.restored, 0, 1e-5) << "the same token in both texts";
    }
  }
  const PatchReport heads = heads_patch(folder, kContinued, {.by_position = true});
  for (const PatchedValue& value : heads.values) {
    if (value.place.layer == 2 && *value.place.position != heads.texts.predicting) {
      EXPECT_NEAR(value.restored, 0, 1e-5) << "no later layer reads it";
    }
    if (*value.place.position == 0) {
      EXPECT_NEAR(value.restored, 0, 1e-5) << "it has seen the same token";
    }
  }
}

TEST(Patch, BatchesDoNotChangeABit) {
  const ModelFolder folder = causal_folder();
  const auto scores = [&](int64_t max_batch_tokens) {
    std::vector<double> all;
    for (const PatchedPart part : {PatchedPart::kHeads, PatchedPart::kStream}) {
      for (const PatchedValue& value :
           heads_patch(folder, kContinued,
                       {.part = part, .by_position = true, .max_batch_tokens = max_batch_tokens})
               .values)
        all.push_back(value.scores.score());
    }
    return all;
  };
  EXPECT_EQ(scores(1), scores(100'000));
}

TEST(Patch, ATranslatorWithoutAPrefixDecidesItsFirstWord) {
  const ModelFolder folder = translator_folder();
  PatchQuestion question = kTranslated;
  question.prefix.clear();
  const PatchReport patching = heads_patch(folder, question);
  EXPECT_EQ(patching.texts.target.ids, std::vector<int32_t>{kPad});
  EXPECT_EQ(patching.texts.predicting, 0);
  EXPECT_NEAR(patching.clean.score(), whole_score(folder, patching.texts, patching.texts.clean, nullptr),
              kPrunedRounding);
}

TEST(Patch, HeadsThatAreMutedInAllRunsRestoreNothing) {
  const ModelFolder folder = causal_folder();
  SiteValues muted;
  muted.mute("decoder.1.self_attention.1");
  const PatchReport patching = heads_patch(folder, kContinued, {.sites = &muted});
  EXPECT_NEAR(patching.clean.score(), whole_score(folder, patching.texts, patching.texts.clean, &muted),
              kPrunedRounding);
  size_t seen = 0;
  for (const PatchedValue& value : patching.values) {
    if (value.name != "decoder.1.self_attention.1") continue;
    ++seen;
    EXPECT_EQ(value.restored, 0);
  }
  EXPECT_EQ(seen, 1u);
  muted.mute("encoder.1.self_attention.1");
  EXPECT_THROW(heads_patch(folder, kContinued, {.sites = &muted}), UsageError);
}

// Runs of one layer go together as copies of the text, and an edit of text 0 is one of all of them.
TEST(Patch, AnEditOfTheTextIsOneOfEveryRun) {
  const ModelFolder folder = causal_folder();
  const HeadGeometry heads = std::as_const(*folder.model).attention("decoder.1.self_attention").geometry();
  const auto patched = [&](std::optional<int32_t> sequence, int64_t tokens) {
    SiteValues values;
    SiteReplacement one{.site = "decoder.1.self_attention.heads",
                        .sequence = sequence,
                        .position = 1,
                        .numbers = Tensor(1, int64_t{heads.heads} * heads.d_value)};
    for (int64_t c = 0; c < one.numbers.cols(); ++c) one.numbers(0, c) = 0.1f * static_cast<float>(c % 3);
    values.replace(std::move(one));
    return heads_patch(folder, kContinued, {.sites = &values, .max_batch_tokens = tokens});
  };
  const PatchReport every = patched(std::nullopt, 2048);
  for (const int64_t tokens : {int64_t{1}, int64_t{2048}}) {
    const PatchReport found = patched(0, tokens);
    ASSERT_EQ(found.values.size(), every.values.size());
    for (size_t i = 0; i < found.values.size(); ++i)
      EXPECT_NEAR(found.values[i].restored, every.values[i].restored, 1e-4) << found.values[i].name;
  }
  EXPECT_THROW(patched(1, 2048), UsageError);
}

/// cos(v, answer) - cos(v, wrong), by embed_text().
double vector_score(const SentenceModel& model, const std::string& text, const PatchQuestion& question,
                    Sites* sites) {
  const Tensor answers = embed_text(model, {question.answer, question.wrong}),
               vector = embed_text(model, {text}, {.sites = sites});
  Tensor all(3, model.dimension);
  for (int64_t j = 0; j < model.dimension; ++j)
    all(0, j) = vector(0, j), all(1, j) = answers(0, j), all(2, j) = answers(1, j);
  return cosine(all.view(), 0, 1) - cosine(all.view(), 0, 2);
}

TEST(Patch, OfASentenceModelIsAsWholePasses) {
  const SentenceModel model =
      load_sentence_model(std::filesystem::path(goldens_folder()) / "sentences" / "dense");
  PatchQuestion question{
      .clean = "two dogs run", .corrupt = "two cats sleep", .answer = "dogs", .wrong = "the cat"};
  const auto tokens = [&](const std::string& text) {
    return sentence_tokens(model, std::vector<std::string>{text}, {})[0].ids.size();
  };
  while (tokens(question.corrupt) < tokens(question.clean)) question.corrupt += " a";
  while (tokens(question.corrupt) > tokens(question.clean)) question.corrupt.pop_back();
  for (const auto& [name, part] : kPatchedPartNames) {
    SCOPED_TRACE(name);
    const PatchReport patching = heads_patch(model, question, {.part = part, .by_position = true});
    EXPECT_EQ(patching.score, PatchScore::kCosine);
    SiteValues clean;
    clean.keep("*");
    EXPECT_NEAR(patching.clean.score(), vector_score(model, question.clean, question, &clean), 1e-6);
    EXPECT_NEAR(patching.corrupt.score(), vector_score(model, question.corrupt, question, nullptr), 1e-6);
    ASSERT_FALSE(patching.values.empty());
    for (const PatchedValue& value : patching.values) {
      SiteValues put;
      put_clean(clean, value, part, heads_of(*model.folder.model, value.place.attention), put);
      EXPECT_NEAR(value.scores.score(), vector_score(model, question.corrupt, question, &put), 1e-6)
          << value.name;
    }
  }
}
}  // namespace
}  // namespace mh
