// Evidence of heads on models of each kind, beside a calculation in float64 from the weights of one sentence after the other.
#include "multihead/heads/measures/heads_where.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/reports/where_json.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/text/train_tokenizer.h"
#include "tests/heads/reports/json_page.h"
#include "tests/heads/small_translator.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;

HeadsText seven_sentences(bool targets) {
  HeadsText text{.sources = {"two dogs run in the park", "a cat sees the small dogs", "the end",
                             "two small cats and two dogs see a park", "run", "the cat runs and runs",
                             "a dog"}};
  if (targets)
    text.targets = {"two cats run",
                    "a park",
                    "the dog sees the cat and the small dogs",
                    "see",
                    "dogs run and run",
                    "in the park",
                    "a dog and a cat"};
  return text;
}

/// What a head chooses.
struct Chosen {
  int64_t queries = 0, sure = 0;
  double even = 0, weight = 0;
  std::map<int32_t, double> of_key, evenly, sure_at, queries_of;  // by token
  std::map<int64_t, double> strength;                             // by line
  std::set<std::vector<int64_t>> choices;                         // sentence, query, key
};

Chosen chosen_by(const ModelFolder& folder, const std::vector<Observation>& seen, const HeadName& head,
                 double sure) {
  const AttentionKind kind = folder.model->place(head.attention).kind;
  const Mask mask = folder.model->mask(head.attention);
  Chosen all;
  for (size_t s = 0; s < seen.size(); ++s) {
    const ConstMatrixView a = seen[s].weights(head);
    const ObservedTokens& keys = kind == AttentionKind::kDecoderSelf ? seen[s].target : seen[s].source;
    const ObservedTokens& queries = kind == AttentionKind::kCross ? seen[s].predicted : keys;
    const auto is_special = [](const ObservedTokens& tokens, int64_t i) {
      return tokens.offsets[static_cast<size_t>(i)] == std::pair(0, 0);
    };
    bool any_special = false;
    for (int64_t j = 0; j < a.cols; ++j) any_special = any_special || is_special(keys, j);
    for (int64_t i = 0; i < a.rows; ++i) {
      if (is_special(queries, i)) continue;
      std::vector<int64_t> may;
      for (int64_t j = 0; j < a.cols; ++j) {
        const bool sink = j == 0 && !any_special, own = kind != AttentionKind::kCross && i == j;
        if (!is_special(keys, j) && !sink && !own && mask.allows(i, i, j, a.rows, a.cols)) may.push_back(j);
      }
      if (may.empty()) continue;
      const int64_t most =
          *std::max_element(may.begin(), may.end(), [&](int64_t x, int64_t y) { return a(i, x) < a(i, y); });
      const auto weight = static_cast<double>(a(i, most));
      const int32_t query_id = queries.ids[static_cast<size_t>(i)];
      ++all.queries;
      ++all.queries_of[query_id];
      all.even += 1.0 / static_cast<double>(may.size());
      for (const int64_t j : may)
        all.evenly[keys.ids[static_cast<size_t>(j)]] += 1.0 / static_cast<double>(may.size());
      all.weight += weight;
      all.of_key[keys.ids[static_cast<size_t>(most)]] += weight;
      if (weight >= sure) {
        ++all.sure;
        ++all.sure_at[query_id];
      }
      double& strength = all.strength[static_cast<int64_t>(s) + 1];
      strength = std::max(strength, weight);
      all.choices.insert({static_cast<int64_t>(s), i, most});
    }
  }
  return all;
}

/// The shares above what is expected, by token.
std::map<int32_t, std::pair<double, double>> shares_of(const std::map<int32_t, double>& parts, double all,
                                                       const std::map<int32_t, double>& expected, double of) {
  std::map<int32_t, std::pair<double, double>> shares;
  for (const auto& [id, part] : parts) {
    if (part / all > expected.at(id) / of) shares[id] = {part / all, expected.at(id) / of};
  }
  return shares;
}

void expect_shares(const std::vector<TokenShare>& found,
                   const std::map<int32_t, std::pair<double, double>>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  for (size_t t = 0; t < found.size(); ++t) {
    ASSERT_TRUE(expected.contains(found[t].id)) << found[t].token;
    EXPECT_NEAR(found[t].share, expected.at(found[t].id).first, 1e-5);
    EXPECT_NEAR(found[t].expected, expected.at(found[t].id).second, 1e-5);
    if (t > 0) {
      EXPECT_GE(found[t - 1].score(), found[t].score());
    }
  }
}

void expect_as_calculated(const ModelFolder& folder) {
  const HeadsText text = seven_sentences(translates(folder));
  TextCorpus corpus(text);
  constexpr double kSure = 0.29;
  const WhereReport report =
      heads_where(folder, corpus,
                  {.evidence = {.tokens = 1000, .alike = 2, .least_count = 1, .sure = kSure},
                   .read = {.observe = {.max_batch_tokens = 53}}});
  std::vector<Observation> seen;
  for (size_t s = 0; s < text.sources.size(); ++s)
    seen.push_back(observe_text(folder, text.sources[s], text.targets.empty() ? "" : text.targets[s]));
  std::map<std::string, Chosen> chosen;
  for (const auto& [attention, heads, place] : folder.model->attentions()) {
    for (int h = 0; h < heads; ++h)
      chosen[attention + "." + std::to_string(h)] = chosen_by(folder, seen, {attention, h}, kSure);
  }
  ASSERT_EQ(report.heads.size(), chosen.size());
  EXPECT_EQ(report.read.sentences, 7);
  for (const HeadEvidence& head : report.heads) {
    SCOPED_TRACE(head.name());
    const Chosen& expected = chosen.at(head.name());
    EXPECT_EQ(head.queries, expected.queries);
    EXPECT_EQ(head.sure, expected.sure);
    EXPECT_EQ(head.sentences(), std::ssize(expected.strength));
    ASSERT_FALSE(head.strongest.empty());
    const auto largest = std::max_element(expected.strength.begin(), expected.strength.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_NEAR(head.strongest[0].strength, largest->second, 1e-5);
    for (const EvidenceSentence& sentence : head.strongest) {
      EXPECT_NEAR(sentence.strength, expected.strength.at(sentence.line), 1e-5);
      if (sentence.key.word.empty()) {
        EXPECT_EQ(sentence.key.token, "\u2581") << "only white space is in no word";
      }
      EXPECT_THAT(*sentence.key_text, HasSubstr(sentence.key.word));
    }
    expect_shares(head.key_tokens, shares_of(expected.of_key, expected.weight, expected.evenly,
                                             static_cast<double>(expected.queries)));
    expect_shares(head.query_tokens, shares_of(expected.sure_at, static_cast<double>(expected.sure),
                                               expected.queries_of, static_cast<double>(expected.queries)));
    EXPECT_EQ(head.alike.size(), 2u);
    for (const HeadLike& like : head.alike) {
      const Chosen& other = chosen.at(like.head.attention + "." + std::to_string(like.head.head));
      int64_t same = 0;
      for (const auto& choice : expected.choices)
        same += static_cast<int64_t>(other.choices.contains(choice));
      const auto both = static_cast<double>(std::min(expected.queries, other.queries));
      EXPECT_NEAR(like.agreement, static_cast<double>(same) / both, 1e-12);
      EXPECT_NEAR(like.by_chance,
                  std::min(expected.even / static_cast<double>(expected.queries),
                           other.even / static_cast<double>(other.queries)),
                  1e-9);
    }
  }
}

std::filesystem::path golden_of_where(const char* name) {
  return std::filesystem::path(goldens_folder()) / name;
}

TEST(WhereHeads, OfATranslatorAreAsCalculated) {
  const HeadsText text = seven_sentences(true);
  expect_as_calculated(small_translator(text.sources, 2));
}

TEST(WhereHeads, OfAnEncoderAreAsCalculated) {
  expect_as_calculated(load_model_folder(golden_of_where("fill/bert")));
}

TEST(WhereHeads, OfACausalModelAreAsCalculated) {
  expect_as_calculated(load_model_folder(golden_of_where("generate/gpt2")));
}

TEST(WhereHeads, OfLayersWithWindowsAreAsCalculated) {
  ModelFolder folder = load_model_folder(golden_of_where("qwen2/some_windows"));
  folder.tokenizer =
      train_bpe(seven_sentences(false).sources, {.vocabulary_size = 29, .least_pair_count = 1});
  expect_as_calculated(folder);
}

class WhereInTranslator : public testing::Test {
 protected:
  HeadsText text = seven_sentences(true);
  ModelFolder folder = small_translator(text.sources, 2);

  WhereReport evidence(const EvidenceOptions& options = {.least_count = 1}, int64_t max_batch_tokens = 2048) {
    TextCorpus corpus(text);
    return heads_where(folder, corpus,
                       {.evidence = options, .read = {.observe = {.max_batch_tokens = max_batch_tokens}}});
  }
};

TEST_F(WhereInTranslator, NeitherBatchesNorThreadsChangeIt) {
  const int threads = thread_count();
  set_thread_count(1);
  const WhereReport whole = evidence();
  set_thread_count(3);
  const WhereReport again = evidence();
  set_thread_count(threads);
  EXPECT_EQ(where_json(whole, "small"), where_json(again, "small"));
  const WhereReport alone = evidence({.least_count = 1}, 1);
  for (size_t h = 0; h < whole.heads.size(); ++h) {
    const HeadEvidence &a = whole.heads[h], &b = alone.heads[h];
    ASSERT_EQ(a.strongest.size(), b.strongest.size());
    for (size_t s = 0; s < a.strongest.size(); ++s)
      EXPECT_NEAR(a.strongest[s].strength, b.strongest[s].strength, 1e-6);
    ASSERT_EQ(a.key_tokens.size(), b.key_tokens.size());
    for (size_t t = 0; t < a.key_tokens.size(); ++t)
      EXPECT_NEAR(a.key_tokens[t].share, b.key_tokens[t].share, 1e-6);
    ASSERT_EQ(a.alike.size(), b.alike.size());
    for (size_t l = 0; l < a.alike.size(); ++l) EXPECT_EQ(a.alike[l].agreement, b.alike[l].agreement);
  }
}

TEST_F(WhereInTranslator, BlocksOfTheCorpusAddUp) {
  HeadsText many = text;
  for (size_t n = text.sources.size(); n < kCorpusLines + 3; ++n) {
    many.sources.push_back(text.sources[n % 7]);
    many.targets.push_back(text.targets[n % 7]);
  }
  many.sources[2] = "";  // lines are counted though they have no text
  const WhereReport once = evidence();
  text = many;
  const WhereReport all = evidence();
  EXPECT_EQ(all.read.sentences, std::ssize(many.sources) - 1);
  for (size_t h = 0; h < all.heads.size(); ++h) {
    const int64_t line = once.heads[h].strongest[0].line;
    EXPECT_EQ(all.heads[h].strongest[0].line, line == 3 ? 10 : line)
        << "of equal ones the first that has text";
  }
}

TEST_F(WhereInTranslator, OnlyTheHeadsThatAreAskedFor) {
  const WhereReport all = evidence();
  const WhereReport some =
      evidence({.heads = {HeadPattern("decoder.*.cross_attention.2")}, .least_count = 1});
  ASSERT_EQ(some.heads.size(), 2u);
  const auto same = std::find_if(all.heads.begin(), all.heads.end(), [](const HeadEvidence& head) {
    return head.name() == "decoder.1.cross_attention.2";
  });
  EXPECT_EQ(where_json({.heads = {some.heads[1]}}, ""), where_json({.heads = {*same}}, ""));
  try {
    evidence({.heads = {HeadPattern("decoder.1.cross_attention.3")}});
    FAIL() << "the model has no such head";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no head 'decoder.1.cross_attention.3'; it has"));
  }
}

TEST_F(WhereInTranslator, AGreedyTranslationIsItsTokens) {
  text.targets.clear();
  const WhereReport report = evidence();
  EXPECT_EQ(report.read.targets, TargetsRead::kGreedy);
  size_t seen = 0;
  for (const HeadEvidence& head : report.heads) {
    if (head.place.kind != AttentionKind::kCross) continue;
    for (const EvidenceSentence& sentence : head.strongest) {
      ++seen;
      EXPECT_TRUE(sentence.query.word.empty());
      EXPECT_THAT(*sentence.query_text, HasSubstr(sentence.query.form()));
      EXPECT_EQ(*sentence.key_text, text.sources[static_cast<size_t>(sentence.line) - 1]);
    }
  }
  EXPECT_GT(seen, 0u);
}

TEST_F(WhereInTranslator, OneSentenceIsEnough) {
  text = {.sources = {"two dogs run"}, .targets = {"a cat runs"}};
  for (const HeadEvidence& head : evidence().heads) {
    EXPECT_EQ(head.sentences(), 1);
    ASSERT_EQ(head.strongest.size(), 1u);
    ASSERT_EQ(head.usual.size(), 1u);
    EXPECT_EQ(head.usual[0].strength, head.strongest[0].strength);
  }
}

TEST(WhereHeads, APairIsOneTextWithPlacesInBoth) {
  const ModelFolder folder = load_model_folder(golden_of_where("fill/bert"));
  const HeadsText text{.sources = {"two dogs run"}, .pairs = {"the cat"}};
  TextCorpus corpus(text);
  std::set<int32_t> begins;
  for (const HeadEvidence& head : heads_where(folder, corpus, {.evidence = {.least_count = 1}}).heads) {
    for (const EvidenceSentence& sentence : head.strongest) {
      EXPECT_EQ(*sentence.key_text, "two dogs run ||| the cat");
      begins.insert({sentence.query.begin, sentence.key.begin});
    }
  }
  EXPECT_GT(*begins.rbegin(), 16) << "no head has its strongest weight in the second text: take another one";
}

TEST_F(WhereInTranslator, JsonHasTheFieldsThatThePageDescribes) {
  const WhereReport report = evidence({.least_count = 1, .sure = 0.3});
  const auto json = nlohmann::json::parse(where_json(report, "small"));
  EXPECT_EQ(json["model"], "small");
  EXPECT_EQ(json["sentences"], 7);
  ASSERT_EQ(json["heads"].size(), report.heads.size());
  EXPECT_EQ(json["heads"][0]["strongest"][0]["strength"].get<double>(),
            report.heads[0].strongest[0].strength);
  std::set<std::string> keys;
  collect_keys(json, keys);
  const std::set<std::string> described = names_on_the_page("The JSON of heads where");
  for (const std::string& key : keys) EXPECT_THAT(described, testing::Contains(key));
  for (const std::string& name : described) {
    if (name.find_first_of(" -./():|") == std::string::npos) {
      EXPECT_THAT(keys, testing::Contains(name));
    }
  }
}

}  // namespace
}  // namespace mh
