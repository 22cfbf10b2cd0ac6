// Thousands of random requests at sites, right and wrong ones, of all kinds of models: each gives finite states or an error
// of one line, with and without gradients, in whole batches and in cached decoding. For address sanitizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/decoding.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/initialise.h"
#include "tests/support/small_model.h"
#include "tests/support/thread_sanitizer.h"

namespace mh {
namespace {

constexpr int kRequestVocabulary = 23, kRequestWidth = 12;

StackConfig request_stack(const char* name, HeadGeometry geometry, StackMask mask) {
  return {.name = name,
          .d_model = kRequestWidth,
          .layers = {{.self_attention = geometry, .feed_forward = {.d_ff = 7}},
                     {.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 5, .gated = true}}},
          .mask = mask};
}

std::unique_ptr<Model> request_encoder(const char* geometry) {
  EncoderConfig config;
  config.embedding = {.vocabulary = kRequestVocabulary, .d_model = kRequestWidth};
  config.max_positions = 19;
  config.stack = request_stack("encoder", geometry_preset(geometry, 2, kRequestWidth), StackMask{});
  config.pooler = true;
  config.masked_words = MaskedWordsConfig{};
  return std::make_unique<EncoderModel>(config);
}

std::unique_ptr<Model> request_causal() {
  CausalConfig config;
  config.embedding = {.vocabulary = kRequestVocabulary, .d_model = kRequestWidth};
  config.max_positions = 19;
  config.positions = Positions::kRotary;
  config.stack = request_stack("decoder", {.heads = 6, .key_heads = 2}, StackMask::causal());
  config.stack.positions = Positions::kRotary;
  return std::make_unique<CausalModel>(config);
}

std::unique_ptr<Model> request_translator() {
  TranslatorShape shape = small_shape();
  shape.vocabulary_size = kRequestVocabulary;
  shape.d_model = kRequestWidth;
  shape.encoder_layers = shape.decoder_layers = 1;
  shape.encoder_heads = 3;
  shape.decoder_heads = 2;
  shape.encoder_ff = shape.decoder_ff = 11;
  return std::make_unique<EncoderDecoder>(shape.config());
}

class SiteRequests : public testing::Test {
 protected:
  SiteRequests() {
    models.push_back(request_encoder("canonical"));
    models.push_back(request_encoder("differential"));
    models.push_back(request_encoder("talking"));
    models.push_back(request_encoder("merged"));
    models.push_back(request_causal());
    models.push_back(request_translator());
    for (const auto& model : models) {
      model->visit([&](const std::string& name, Parameter& parameter) {
        if (name.find("norm") == std::string::npos) fill_normal(parameter, random, 0.4);
      });
      sites.push_back(model->sites());
    }
  }

  int below(int count) { return static_cast<int>(random.below(static_cast<uint32_t>(count))); }
  bool chance(int of) { return below(of) == 0; }

  Batch random_batch() {
    Batch batch;
    const int sequences = 1 + below(3);
    for (int s = 0; s < sequences; ++s) {
      std::vector<int32_t> ids(static_cast<size_t>(1 + below(6)));
      for (int32_t& id : ids) id = below(kRequestVocabulary);
      batch.add(ids, s);
    }
    return batch;
  }

  std::string random_site(size_t model) {
    const std::string& name =
        sites[model][static_cast<size_t>(below(static_cast<int>(sites[model].size())))].name;
    if (chance(40)) return name + "x";
    if (chance(8)) return name.substr(0, name.find('.')) + "*" + name.substr(name.rfind('.'));
    return name;
  }

  SiteReplacement random_replacement(size_t model, const Batch& text) {
    const SiteShape& site = sites[model][static_cast<size_t>(below(static_cast<int>(sites[model].size())))];
    SiteReplacement one{.site = chance(50) ? random_site(model) : site.name};
    if (chance(2)) one.sequence = below(3) - (chance(30) ? 1 : 0);
    if (chance(2)) one.position = below(5);
    if (site.blocks > 1 && chance(2))
      one.head = below(site.blocks + (chance(10) ? 1 : 0)) - (chance(40) ? 1 : 0);
    int64_t columns = site.columns > 0 ? site.columns : 1 + below(6);
    if (site.columns == 0 && chance(2)) {
      columns = 0;
      for (int32_t s = 0; s < text.ragged.sequences(); ++s)
        columns = std::max<int64_t>(columns, text.ragged.length(s));
    }
    if (one.head) columns /= site.blocks;
    one.numbers = Tensor(chance(4) ? 1 + below(6) : 1, std::max<int64_t>(1, columns + (chance(20) ? 1 : 0)));
    for (int64_t i = 0; i < one.numbers.size(); ++i)
      one.numbers.data()[i] = static_cast<float>(random.normal());
    if (chance(50)) one.numbers.data()[0] = std::nanf("");
    return one;
  }

  void ask(size_t model, const Batch& text, SiteValues& values, bool gradients) {
    const int asks = 1 + below(3);
    for (int i = 0; i < asks; ++i) {
      switch (below(gradients ? 6 : 5)) {
        case 0:
          values.keep(random_site(model));
          break;
        case 1:
          values.mute(chance(2) ? "*.0"
                                : sites[model][0].name.substr(0, 7) + ".0.self_attention." +
                                      std::to_string(below(3)));
          break;
        case 2:
        case 3:
          values.replace(random_replacement(model, text));
          break;
        case 4: {
          const std::string heads = sites[model][0].name.substr(0, 7) + ".0.*." + std::to_string(below(3));
          values.replace_weights(heads, std::data(kWeightRuleNames)[below(3)].second);
          break;
        }
        default:
          values.watch(random_site(model));
      }
    }
    if (chance(2)) models[model]->check(values);
  }

  void run_whole(const Model& model, const Batch& text, const Batch& target, SiteValues& values,
                 bool gradients) {
    Tape& tape = gradients ? recording : plain;
    tape.clear();
    Context context{.tape = tape, .sites = &values};
    const bool translates = model.facts().source_vocabulary > 0 && model.facts().vocabulary > 0;
    const Sequences rows = translates ? target.view() : text.view();
    const Var states = model.read(context, text.view(), translates ? target.view() : Sequences());
    ASSERT_TRUE(all_finite(states.value()));
    model.call_output_sites(context, states, rows);
    if (!gradients) return;
    const Var logits = model.logits(context, states, rows);
    Tensor seed(logits.rows(), logits.cols());
    seed.fill(1);
    tape.seed(logits, std::as_const(seed).view());
    tape.backward();
    for (const std::string& asked : values.sites_asked()) {
      try {
        ASSERT_TRUE(all_finite(values.gradient(asked)));
      } catch (const UsageError&) {  // it is not watched, or a pattern
      }
    }
  }

  void run_cached(const LanguageModel& model, const Batch& text, SiteValues& values) {
    Decoding decoding(model, {.tape = plain, .sites = &values});
    const int32_t sequences = text.ragged.sequences();
    std::vector<int32_t> tokens(static_cast<size_t>(sequences), 3), parents, sources;
    for (int32_t s = 0; s < sequences; ++s) parents.push_back(s), sources.push_back(s);
    if (model.facts().source_vocabulary > 0) {
      decoding.start(text.view());
    } else {
      decoding.read(text.view());
    }
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(all_finite(decoding.step(tokens, parents, sources)));
      std::vector<Candidate> best(2 * tokens.size());
      decoding.next_words().best({.candidates = 2}, best, decoding.scratch());
      for (const Candidate& one : best) tokens[static_cast<size_t>(&one - best.data()) / 2] = one.token;
    }
  }

  Random random{20261125};
  Tape plain, recording{Tape::Mode::kRecordValues};  // they keep their memory from request to request
  std::vector<std::unique_ptr<Model>> models;
  std::vector<std::vector<SiteShape>> sites;
};

TEST_F(SiteRequests, GiveFiniteStatesOrOneLine) {
  constexpr int kRequests = kThreadSanitizer ? 500 : 10000;
  const int before = thread_count();
  set_thread_count(1);  // models are so small that waking others takes most of the time
  int done = 0, refused = 0;
  for (int i = 0; i < kRequests; ++i) {
    const auto number = static_cast<size_t>(below(static_cast<int>(models.size())));
    const Batch text = random_batch(), target = [&] {
      Batch batch;
      for (int32_t s = 0; s < text.ragged.sequences(); ++s) {
        std::vector<int32_t> ids(static_cast<size_t>(1 + below(5)), 4);
        batch.add(ids, s);
      }
      return batch;
    }();
    const auto* language = dynamic_cast<const LanguageModel*>(models[number].get());
    const bool cached = language != nullptr && chance(2), gradients = !cached && chance(2);
    SiteValues values;
    try {
      ask(number, text, values, gradients);
      if (cached) {
        run_cached(*language, text, values);
      } else {
        run_whole(*models[number], text, target, values, gradients);
      }
      ++done;
    } catch (const Error& error) {
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      ++refused;
    }
  }
  set_thread_count(before);
  EXPECT_GT(done, kRequests / 4);
  EXPECT_GT(refused, kRequests / 20);
  RecordProperty("done", done);
}

}  // namespace
}  // namespace mh
