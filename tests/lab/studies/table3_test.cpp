// Table 3 of Vaswani et al. 2017 in miniature: its rows, and how agreement with the paper is counted.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lab/studies/table3/claims.h"
#include "lab/studies/table3/rows.h"
#include "multihead/models/translator_shape.h"
#include "tests/lab/studies/tiny_runner.h"

namespace mh::table3 {
namespace {

/// Five seeds about this mean, which their interval leaves or does not leave 0 out of.
Differences row(double mean, double paper, bool clear = true) {
  const double step = std::abs(mean) * (clear ? 0.1 : 2);
  return {{mean - 2 * step, mean - step, mean, mean + step, mean + 2 * step}, paper};
}

std::vector<Differences> rows_that_agree(int agree, int all) {
  std::vector<Differences> rows;
  for (int i = 0; i < all; ++i)
    rows.push_back(row(i % 2 == 0 ? 0.3 : -0.3, (i % 2 == 0) == (i < agree) ? 0.5 : -0.5));
  return rows;
}

TEST(Agreement, IsOfTheSameDirection) {
  struct Case {
    double here, paper;
    int agree;
  };
  for (const auto& [here, paper, agree] :
       {Case{0.3, 0.5, 1}, Case{-0.3, -0.5, 1}, Case{0.3, -0.5, 0}, Case{-0.3, 0.5, 0}}) {
    const Agreement found = agreement({row(here, paper)}, 0.02);
    EXPECT_EQ(found.clear, 1) << here << " " << paper;
    EXPECT_EQ(found.agree, agree) << here << " " << paper;
  }
}

TEST(Agreement, LeavesOutRowsThatAreNotClearHere) {
  EXPECT_EQ(agreement({row(0.3, 0.5, false), row(-0.3, -0.5, false)}, 0.02).clear, 0);
  EXPECT_EQ(agreement({row(0.3, 0.5, false), row(-0.3, -0.5)}, 0.02).clear, 1);
  EXPECT_EQ(agreement({{{0.3}, 0.5}}, 0.02).clear, 0) << "one seed says nothing";
  EXPECT_EQ(agreement({{{0, 0, 0}, 0.5}}, 0.02).clear, 0) << "no difference at all";
  EXPECT_EQ(agreement({{{0.3, 0.3, 0.3}, 0.5}}, 0.02).clear, 1);
}

TEST(Agreement, LeavesOutRowsThatHardlyDifferInThePaper) {
  EXPECT_EQ(agreement({row(0.3, 0)}, 0.02).clear, 0);
  EXPECT_EQ(agreement({row(0.3, 0.01), row(0.3, -0.01)}, 0.02).clear, 0);
  EXPECT_EQ(agreement({row(0.3, 0.03), row(0.3, -0.03)}, 0.02).clear, 2);
  // The limit itself does not count, whatever the rounding of a difference of decimals.
  EXPECT_EQ(agreement({row(0.3, 4.94 - 4.92), row(0.3, 4.90 - 4.92)}, 0.02).clear, 0);
  EXPECT_EQ(agreement({row(0.3, 25.9 - 25.8), row(0.3, 25.7 - 25.8)}, 0.1).clear, 0);
}

TEST(Agreement, HasTheChanceOfSoManyOrMore) {
  const auto chance = [](int agree, int all) {
    const Agreement found = agreement(rows_that_agree(agree, all), 0.02);
    EXPECT_EQ(found.clear, all);
    EXPECT_EQ(found.agree, agree);
    return found.chance;
  };
  EXPECT_DOUBLE_EQ(chance(5, 5), 1.0 / 32);
  EXPECT_DOUBLE_EQ(chance(4, 5), 6.0 / 32);
  EXPECT_DOUBLE_EQ(chance(3, 5), 16.0 / 32);
  EXPECT_DOUBLE_EQ(chance(0, 5), 1);
  EXPECT_DOUBLE_EQ(chance(0, 0), 1);
  EXPECT_DOUBLE_EQ(chance(0, 1), 1);
  EXPECT_DOUBLE_EQ(chance(1, 1), 0.5);
  EXPECT_DOUBLE_EQ(chance(12, 13), 14.0 / 8192);
  // Rows that are not clear change nothing.
  std::vector<Differences> rows = rows_that_agree(5, 5);
  rows.push_back(row(0.3, -0.5, false));
  EXPECT_DOUBLE_EQ(agreement(rows, 0.02).chance, 1.0 / 32);
  EXPECT_DOUBLE_EQ(agreement(rows, 0.02).chance_of_fewer, 1) << "all agree";
}

/// A row of the paper: what is said of it, its sizes, and what is reported of it (newstest2013).
struct Paper {
  double layers = 6, d = 512, ff = 2048, heads = 8, key = 64, value = 64, dropout = 0.1, smoothing = 0.1;
  bool learned = false;
  double perplexity = 4.92, bleu = 25.8;
};

std::map<std::string, Paper> paper() {
  return {{"base", {}},
          {"h=1", {.heads = 1, .key = 512, .value = 512, .perplexity = 5.29, .bleu = 24.9}},
          {"h=4", {.heads = 4, .key = 128, .value = 128, .perplexity = 5.00, .bleu = 25.5}},
          {"h=16", {.heads = 16, .key = 32, .value = 32, .perplexity = 4.91, .bleu = 25.8}},
          {"h=32", {.heads = 32, .key = 16, .value = 16, .perplexity = 5.01, .bleu = 25.4}},
          {"d_k=16", {.key = 16, .perplexity = 5.16, .bleu = 25.1}},
          {"d_k=32", {.key = 32, .perplexity = 5.01, .bleu = 25.4}},
          {"N=2", {.layers = 2, .perplexity = 6.11, .bleu = 23.7}},
          {"N=4", {.layers = 4, .perplexity = 5.19, .bleu = 25.3}},
          {"N=8", {.layers = 8, .perplexity = 4.88, .bleu = 25.5}},
          {"d=256", {.d = 256, .key = 32, .value = 32, .perplexity = 5.75, .bleu = 24.5}},
          {"d=1024", {.d = 1024, .key = 128, .value = 128, .perplexity = 4.66, .bleu = 26.0}},
          {"d_ff=1024", {.ff = 1024, .perplexity = 5.12, .bleu = 25.4}},
          {"d_ff=4096", {.ff = 4096, .perplexity = 4.75, .bleu = 26.2}},
          {"smoothing 0", {.smoothing = 0, .perplexity = 4.67, .bleu = 25.3}},
          {"smoothing 0.2", {.smoothing = 0.2, .perplexity = 5.47, .bleu = 25.7}},
          {"dropout 0", {.dropout = 0, .perplexity = 5.77, .bleu = 24.6}},
          {"dropout 0.2", {.dropout = 0.2, .perplexity = 4.95, .bleu = 25.5}},
          {"learned positions", {.learned = true, .perplexity = 4.92, .bleu = 25.7}},
          {"big", {.d = 1024, .ff = 4096, .heads = 16, .dropout = 0.3, .perplexity = 4.33, .bleu = 26.4}}};
}
const std::set<std::string> kOfTextOnly = {"learned positions", "big"};

SizeSettings small_settings() {
  SizeSettings settings = test::tiny_settings();
  settings.model.d_model = 32, settings.model.encoder_ff = settings.model.decoder_ff = 40;
  settings.vocabulary = 60;
  return settings;
}

/// Every row is the same part or multiple of the base's numbers as in the paper.
void expect_the_papers_rows(const std::vector<Row>& rows, bool text) {
  std::map<std::string, Paper> missing = paper();
  ASSERT_EQ(std::string(rows.front().paper.row), "base");
  const TranslatorShape& base = rows.front().arm.model;
  const Paper of_base;
  const auto part = [](int32_t number, int32_t of) { return static_cast<double>(number) / of; };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.paper.row);
    const auto found = missing.find(row.paper.row);
    ASSERT_NE(found, missing.end()) << "twice, or not in the paper";
    const Paper p = found->second;
    missing.erase(found);
    const TranslatorShape& m = row.arm.model;
    EXPECT_DOUBLE_EQ(row.paper.perplexity, p.perplexity);
    EXPECT_DOUBLE_EQ(row.paper.bleu, p.bleu);
    EXPECT_DOUBLE_EQ(part(m.encoder_layers, base.encoder_layers), p.layers / of_base.layers);
    EXPECT_DOUBLE_EQ(part(m.encoder_heads, base.encoder_heads), p.heads / of_base.heads);
    EXPECT_DOUBLE_EQ(part(m.d_model, base.d_model), p.d / of_base.d);
    EXPECT_DOUBLE_EQ(part(m.encoder_ff, base.encoder_ff), p.ff / of_base.ff);
    EXPECT_EQ(m.encoder_layers, m.decoder_layers);
    EXPECT_EQ(m.encoder_heads, m.decoder_heads);
    EXPECT_EQ(m.encoder_ff, m.decoder_ff);
    const HeadGeometry heads = completed(m.heads_of({AttentionKind::kEncoderSelf, 0}), m.d_model, "encoder");
    const int32_t size = base.d_model / base.encoder_heads;
    EXPECT_DOUBLE_EQ(part(heads.d_key, size), p.key / of_base.key);
    EXPECT_DOUBLE_EQ(part(heads.d_value, size), p.value / of_base.value);
    EXPECT_FLOAT_EQ(row.arm.label_smoothing, static_cast<float>(p.smoothing));
    EXPECT_FLOAT_EQ(m.dropout.residual, static_cast<float>(p.dropout));
    EXPECT_EQ(m.positions, p.learned ? Positions::kLearned : Positions::kSinusoidal);
    // Fewer numbers of a key start with scores of another size: these rows have both starts.
    const bool both = heads.d_key != heads.d_value;
    EXPECT_EQ(row.arm.start, both ? Start::kEqualVariances : Start::kUsual);
    ASSERT_EQ(row.usual.has_value(), both);
    if (both) {
      EXPECT_EQ(row.usual->start, Start::kUsual);
      EXPECT_EQ(row.usual->model.geometry, m.geometry);
      EXPECT_NE(row.usual->name, row.arm.name);
    }
  }
  std::set<std::string> names;
  for (const auto& [name, row] : missing) names.insert(name);
  EXPECT_EQ(names, text ? std::set<std::string>() : kOfTextOnly);
}

TEST(Rows, AreThePapersInMiniature) {
  test::TinyRunner runner(small_settings());
  const std::vector<Row> all = rows(*runner);
  EXPECT_EQ(all.front().arm.model.encoder_layers, 3);
  EXPECT_EQ(all.front().arm.model.encoder_heads, 8);
  expect_the_papers_rows(all, false);
}

TEST(Rows, OfRealTextAreAllOfThePapers) {
  const test::ScratchFolder data;
  test::write_tiny_text(data.path());
  test::TinyRunner runner(small_settings(), StudySize::kPaper, data.path());
  expect_the_papers_rows(rows(*runner), true);
}

TEST(NarrowerKeys, AreComparedWithTheBaseFromEqualStarts) {
  test::TinyRunner tiny(small_settings());
  ArmRunner& runner = *tiny;
  const TrainedCheck& check = trained()[1];
  ASSERT_EQ(check.id, "table 3 (B)");
  const Claim claim = check.run(runner);
  EXPECT_EQ(claim.id, check.id);
  ASSERT_EQ(claim.clauses.size(), 3u);
  ASSERT_EQ(claim.tables.size(), 1u);
  ASSERT_EQ(claim.tables[0].rows.size(), 3u);
  EXPECT_EQ(claim.tables[0].rows[0][0], "base");
  // 32 numbers and 8 heads: 4 a head in the base, 1 and 2 in rows (B).
  for (const size_t i : {0, 1}) {
    SCOPED_TRACE(i);
    const Clause& clause = claim.clauses[i];
    const std::vector<std::string>& row = claim.tables[0].rows[i + 1];
    const std::string size = i == 0 ? "d_k = 1" : "d_k = 2";
    EXPECT_EQ(clause.statement, "Heads of " + size + " are worse than those of the base.");
    EXPECT_EQ(clause.asked, "loss of " + size + " minus base: above 0");
    EXPECT_EQ(clause.kind, Evidence::kTrained);
    EXPECT_EQ(clause.original, OriginalSays::kSame);
    EXPECT_TRUE(clause.measured.starts_with(row[4]))
        << clause.measured << ": from the equal start, not " << row[7];
  }
  EXPECT_EQ(claim.clauses[2].verdict, Verdict::kMeasured);
}

}  // namespace
}  // namespace mh::table3
