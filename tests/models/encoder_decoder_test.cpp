// Properties of every encoder-decoder, whatever its weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/folders/families/marian.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/models/vocabulary_head.h"
#include "tests/models/small_batch.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using enum Positions;

struct Case {
  const char* name;
  NormPlacement norm;
  bool share;
  const char* geometry = "canonical";
  Positions positions = Positions::kSinusoidal;
  bool as_t5 = false;  // then nothing of this counts but `share`
};

class TransformerProperties : public testing::TestWithParam<Case> {
 protected:
  static TranslatorShape shape_of_case() {
    TranslatorShape shape = small_shape();
    shape.norm = GetParam().norm;
    shape.share_embeddings = GetParam().share;
    shape.activation = Activation::kGelu;
    shape.geometry = geometry_preset(GetParam().geometry, shape.encoder_heads, shape.d_model);
    shape.positions = GetParam().positions;
    if (GetParam().as_t5) put_t5(shape);
    if (!shape.share_embeddings) shape.target_vocabulary_size = 31;
    return shape;
  }
  TransformerProperties() : model(shape_of_case().config()) {
    model.initialise(17);
    sharpen(model, 1.5f);
    add_to_logit(model, 5, 0.7f);
    sources = random_sources(3, {5, 1, 13, 2, 7}, 37);
    targets = random_sources(4, {3, 11, 1, 6, 2}, 31);
    for (auto& target : targets) target.insert(target.begin(), kPad);
  }
  ~TransformerProperties() override { set_thread_count(threads); }

  const int threads = thread_count();
  EncoderDecoder model;
  std::vector<std::vector<int32_t>> sources, targets;
};

TEST_P(TransformerProperties, ABatchEqualsEachSentenceAlone) {
  const auto together = test::logits_of(model, Batch(sources), Batch(targets));
  size_t at = 0;
  for (size_t s = 0; s < sources.size(); ++s) {
    for (const float alone : test::logits_of(model, Batch({sources[s]}), Batch({targets[s]}))) {
      ASSERT_NEAR(together[at], alone, 1e-5f * (1 + std::abs(alone))) << "sentence " << s;
      ++at;
    }
  }
  EXPECT_EQ(at, together.size());
}

TEST_P(TransformerProperties, LaterTargetTokensChangeNothingBefore) {
  const Batch source({sources[2]});
  auto changed = targets[1];
  changed.back() = changed.back() == 3 ? 4 : 3;
  const auto first = test::logits_of(model, source, Batch({targets[1]}));
  const auto second = test::logits_of(model, source, Batch({changed}));
  const size_t before = (targets[1].size() - 1) * static_cast<size_t>(model.config().target_vocabulary());
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + static_cast<ptrdiff_t>(before), second.begin()));
  EXPECT_NE(first, second);
}

TEST_P(TransformerProperties, AnyNumberOfThreadsGivesTheSameBits) {
  const Batch source(sources), target(targets);
  std::vector<int32_t> out;  // what follows; any tokens do
  for (const int32_t id : target.ids) out.push_back((id + 7) % model.config().target_vocabulary());
  std::vector<std::vector<float>> first;
  for (const int count : {1, 2, 3, 7}) {
    set_thread_count(count);
    std::vector<std::vector<float>> found{test::logits_of(model, source, target)};
    Tape tape(Tape::Mode::kRecord);
    Context context{.tape = tape, .dropout = DropoutKey{.seed = 5, .update = 2}};
    model.visit([](const std::string&, Parameter& parameter) { parameter.gradient.forget(); });
    VocabularyScratch scratch;
    const auto loss = model.loss(context, source.view(), target.view(), out,
                                 {.label_smoothing = 0.1f, .scale = 0.2f}, scratch);
    found.push_back({loss.loss.value()(0, 0)});
    tape.backward();
    model.visit([&](const std::string& name, Parameter& parameter) {
      if (name != "logits_bias") found.push_back(test::copy_of(parameter.gradient_sum()));
    });
    if (first.empty()) {
      first = found;
    } else {
      EXPECT_EQ(first, found) << count << " threads";
    }
  }
}

TEST_P(TransformerProperties, CachedDecodingEqualsDecodingWhole) {
  const Batch source(sources);
  const auto vocabulary = static_cast<size_t>(model.config().target_vocabulary());
  const auto whole = test::logits_of(model, source, Batch(targets));
  std::vector<size_t> starts;
  size_t rows_before = 0;
  for (const auto& target : targets) {
    starts.push_back(rows_before);
    rows_before += target.size();
  }

  // Normalised queries and keys have their scores multiplied by a number far above 1, and rounding with them.
  const float tolerance =
      shape_of(model.config()).geometry.query_key_norm == QueryKeyNorm::kL2 ? 5e-5f : 1e-5f;

  // Sentences leave when their target ends, so rows move from step to step.
  Tape tape;
  Decoding decoding(model, Context{.tape = tape}, source.view());
  std::vector<int32_t> of;
  for (int32_t s = 0; s < 5; ++s) of.push_back(s);
  std::vector<int32_t> parents(of.size(), 0);
  for (size_t step = 0; !of.empty(); ++step) {
    std::vector<int32_t> tokens;
    for (const int32_t s : of) tokens.push_back(targets[static_cast<size_t>(s)][step]);
    const ConstMatrixView states = decoding.step(tokens, parents, of);
    ASSERT_EQ(states.rows, static_cast<int64_t>(of.size()));
    Tensor logits(states.rows, static_cast<int64_t>(vocabulary));
    model.vocabulary().logits(states, logits.view());
    std::vector<int32_t> next_of, next_parents;
    for (size_t row = 0; row < of.size(); ++row) {
      const auto s = static_cast<size_t>(of[row]);
      for (size_t v = 0; v < vocabulary; ++v) {
        const float expected = whole[(starts[s] + step) * vocabulary + v];
        ASSERT_NEAR(logits(static_cast<int64_t>(row), static_cast<int64_t>(v)), expected,
                    tolerance * (1 + std::abs(expected)))
            << "sentence " << s << " step " << step;
      }
      if (step + 1 == targets[s].size()) continue;
      next_of.push_back(of[row]);
      next_parents.push_back(static_cast<int32_t>(row));
    }
    of = next_of;
    parents = next_parents;
  }
}

TEST_P(TransformerProperties, MutingAHeadIsZeroingItsRowsOfTheOutputProjection) {
  const Batch source(sources), target(targets);
  const auto untouched = test::logits_of(model, source, target);
  for (const auto& [attention, heads, place] : model.attentions()) {
    const int head = heads - 1;
    SiteValues sites;
    sites.mute(attention + "." + std::to_string(head));
    model.check(sites);
    const auto muted = test::logits_of(model, source, target, &sites);

    EncoderDecoder zeroed(model.config());
    std::vector<std::vector<float>> values;
    model.visit([&](const std::string&, Parameter& parameter) {
      values.push_back(test::copy_of(parameter.value.view()));
    });
    size_t next = 0;
    zeroed.visit([&, &attention = attention, &heads = heads](const std::string& name, Parameter& parameter) {
      std::copy(values[next].begin(), values[next].end(), parameter.value.data());
      ++next;
      if (name == attention + ".w_o") {
        const int64_t d_value = parameter.value.rows() / heads;
        for (int64_t row = head * d_value; row < (head + 1) * d_value; ++row) {
          for (int64_t col = 0; col < parameter.value.cols(); ++col) parameter.value(row, col) = 0;
        }
      }
      parameter.changed();
    });
    const auto expected = test::logits_of(zeroed, source, target);
    ASSERT_EQ(muted.size(), expected.size());
    float change = 0;
    for (size_t i = 0; i < muted.size(); ++i) {
      ASSERT_NEAR(muted[i], expected[i], 1e-5f * (1 + std::abs(expected[i]))) << attention;
      change = std::max(change, std::abs(muted[i] - untouched[i]));
    }
    EXPECT_GT(change, 1e-3f) << attention;
  }
}

// Values of attentions that say how alike their heads are stay until they are read, also where nothing is recorded and
// layers use memory again and again.
TEST_P(TransformerProperties, EvaluatingWithADisagreementIsWhatTrainingSees) {
  const Batch source(sources), target(targets);
  const std::vector<int32_t> out(target.ids.size(), 3);
  const auto alike = [&](Disagreement form, Tape::Mode mode) {
    Tape tape(mode);
    Context context{.tape = tape};
    VocabularyScratch scratch;
    return model.loss(context, source.view(), target.view(), out, {.disagreement = form}, scratch)
        .head_similarity;
  };
  const double subspace = alike({.subspace = true}, Tape::Mode::kEvaluate),
               positions = alike({.positions = true}, Tape::Mode::kEvaluate),
               output = alike({.output = true}, Tape::Mode::kEvaluate),
               written = alike({.written = true}, Tape::Mode::kEvaluate);
  for (const auto& [name, form] : kDisagreementNames) {
    const double found = alike(form, Tape::Mode::kEvaluate);
    EXPECT_EQ(found, alike(form, Tape::Mode::kRecord)) << name;
    const double parts =
        form.subspace * subspace + form.positions * positions + form.output * output + form.written * written;
    EXPECT_NEAR(found, parts, 1e-5 * (1 + parts)) << name << ": the sum of its parts";
  }
}

TEST_P(TransformerProperties, UnknownHeadsAreRefused) {
  SiteValues no_such_layer, no_such_head;
  no_such_layer.mute("encoder.2.self_attention.0");
  no_such_head.mute("decoder.1.cross_attention.5");
  EXPECT_THROW(model.check(no_such_layer), UsageError);
  EXPECT_THROW(model.check(no_such_head), UsageError);
}

TEST(HeadsOfAModel, ErrorsListWhatExists) {
  TranslatorShape shape = small_shape();
  shape.decoder_layers = 1;
  shape.decoder_heads = 1;
  shape.own_heads.push_back({.attention = "encoder.1.self_attention", .geometry = {.heads = 5}});
  const EncoderDecoder model(shape.config());
  for (const char* none : {"encoder.2.self_attention.0", "decoder.0.cross_attention.1", "*.cross.*", "*.7"}) {
    EXPECT_THAT(
        [&] { model.heads_named(HeadPattern(none)); },
        testing::ThrowsMessage<UsageError>(
            std::string("this model has no head '") + none +
            "'; it has encoder.0.self_attention with heads 0 to 1; encoder.1.self_attention with "
            "heads 0 to 4; decoder.0.self_attention with head 0; decoder.0.cross_attention with head 0"));
  }
  const EncoderDecoder plain(small_shape().config());
  EXPECT_THAT([&] { plain.heads_named(HeadPattern("*.9")); },
              testing::ThrowsMessage<UsageError>(testing::EndsWith(
                  "it has encoder.0.self_attention to encoder.1.self_attention with heads 0 to 1 each; "
                  "decoder.0.self_attention to decoder.2.self_attention with heads 0 to 4 each; "
                  "decoder.0.cross_attention to decoder.2.cross_attention with heads 0 to 4 each")));
}

TEST_P(TransformerProperties, PatternsMuteWhatTheyStandFor) {
  const Batch source(sources), target(targets);
  for (const char* pattern :
       {"encoder.1.self_attention.*", "*.cross_attention.*", "*.self_attention.0", "decoder.*"}) {
    SiteValues at_once, one_by_one;
    at_once.mute(pattern);
    const std::vector<HeadName> heads = model.heads_named(HeadPattern(pattern));
    ASSERT_GT(heads.size(), 1u);
    for (const HeadName& head : heads) one_by_one.mute(head.attention + "." + std::to_string(head.head));
    model.check(at_once);
    const auto muted = test::logits_of(model, source, target, &at_once);
    EXPECT_EQ(muted, test::logits_of(model, source, target, &one_by_one)) << pattern;
    EXPECT_NE(muted, test::logits_of(model, source, target)) << pattern;
  }
  size_t all = 0;
  for (const auto& [attention, heads, place] : model.attentions()) all += static_cast<size_t>(heads);
  EXPECT_EQ(model.heads_named(HeadPattern("*")).size(), all);
  EXPECT_EQ(
      model.heads_named(HeadPattern("decoder.1.cross_attention.*")).back(),
      (HeadName{"decoder.1.cross_attention", model.attention("decoder.1.cross_attention").heads() - 1}));
}

TEST_P(TransformerProperties, EveryParameterHasAPlaceOfItsOwnInBothFormats) {
  for (const std::string_view type : {"marian", "multihead"}) {
    if (type == "marian" && natural_model_type(model.config()) != type) continue;
    std::set<std::string> names;
    model.visit([&](const std::string& name, Parameter&) {
      const Tying tying{.source_and_target = GetParam().share, .target_and_output = GetParam().share};
      EXPECT_TRUE(names.insert(encoder_decoder_place(type, name, tying).names.front()).second) << name;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, TransformerProperties,
    testing::Values(Case{"post_shared", NormPlacement::kPost, true},
                    Case{"pre_shared", NormPlacement::kPre, true},
                    Case{"post_separate", NormPlacement::kPost, false},
                    Case{"wide", NormPlacement::kPost, true, "bloem-wide"},
                    Case{"narrow", NormPlacement::kPre, true, "bloem-narrow-output"},
                    Case{"fourth", NormPlacement::kPost, true, "bloem-fourth"},
                    Case{"merged", NormPlacement::kPost, true, "merged"},
                    Case{"tied", NormPlacement::kPost, false, "tied"},
                    Case{"doubled", NormPlacement::kPost, true, "doubled"},
                    Case{"multi_query", NormPlacement::kPost, true, "multi-query"},
                    Case{"collaborative", NormPlacement::kPost, true, "collaborative"},
                    Case{"learned", NormPlacement::kPost, true, "canonical", kLearned},
                    Case{"learned_separate", NormPlacement::kPost, false, "canonical", kLearned},
                    Case{"rotary", NormPlacement::kPost, true, "tensor2tensor", kRotary},
                    Case{"alibi", NormPlacement::kPre, true, "canonical", kAlibi},
                    Case{"t5", NormPlacement::kPre, true, "multi-query", kT5},
                    Case{"as_t5", NormPlacement::kPre, true, "canonical", kT5, true},
                    Case{"as_t5_separate", NormPlacement::kPre, false, "canonical", kT5, true},
                    Case{"shaw", NormPlacement::kPost, true, "canonical", kShaw},
                    Case{"shaw_merged", NormPlacement::kPost, true, "merged", kShaw},
                    Case{"normalised", NormPlacement::kPost, true, "query-key-norm", kRotary},
                    Case{"differential", NormPlacement::kPre, true, "differential"},
                    Case{"talking", NormPlacement::kPost, true, "talking", kT5},
                    Case{"no_positions", NormPlacement::kPost, true, "canonical", kNone}),
    [](const auto& tested) { return tested.param.name; });

/// That has a W^O, whose rows can be zeroed.
std::vector<Case> every_geometry() {
  std::vector<Case> all;
  for (const GeometryName& geometry : geometry_names()) {
    if (geometry_preset(geometry.name, 2, 4).output == HeadOutput::kProjection)
      all.push_back({geometry.name.data(), NormPlacement::kPost, true, geometry.name.data()});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Geometries, TransformerProperties, testing::ValuesIn(every_geometry()),
                         [](const auto& tested) {
                           std::string name = tested.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(EncoderDecoder, InitialisesFromItsSeedAlone) {
  const auto weights = [](uint64_t seed) {
    EncoderDecoder model(small_shape().config());
    model.initialise(seed);
    std::vector<std::vector<float>> values;
    model.visit([&](const std::string&, Parameter& p) { values.push_back(test::copy_of(p.value.view())); });
    return values;
  };
  EXPECT_EQ(weights(3), weights(3));
  EXPECT_NE(weights(3), weights(4));
}

TEST(EncoderDecoder, RefusesWhatCannotBe) {
  TranslatorShape shape = small_shape();
  shape.encoder_heads = 3;  // 20 is no multiple of 3
  shape.encoder_layers = 0;
  EXPECT_THROW(EncoderDecoder{shape.config()}, UsageError);
  shape.encoder_layers = 1;
  try {
    EncoderDecoder model(shape.config());
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("encoder_heads is 3"));
  }
}

TEST(EncoderDecoder, RefusesTokensAndLengthsBeyondItsOwn) {
  EncoderDecoder model(small_shape().config());
  model.initialise(1);
  const Batch ordinary({{3, 4, 0}}), unknown({{3, 37, 0}}), negative({{3, -1, 0}});
  const Batch too_long({std::vector<int32_t>(42, 3)});
  for (const Batch* wrong : {&unknown, &negative, &too_long}) {
    EXPECT_THROW(test::logits_of(model, *wrong, ordinary), UsageError);
    EXPECT_THROW(test::logits_of(model, ordinary, *wrong), UsageError);
  }
}

}  // namespace
}  // namespace mh
