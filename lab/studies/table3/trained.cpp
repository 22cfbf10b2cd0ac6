#include <fmt/format.h>

#include <algorithm>

#include "lab/studies/comparison.h"
#include "lab/studies/table3/claims.h"

namespace mh::table3 {
namespace {

struct Row {
  Arm arm;
  std::string paper;  // the row it stands for, and its BLEU on newstest2013
};

/// Rows (A) to (C) of the paper's table, each number the same multiple of the base's; on real text, which can
/// be learned by heart, (D) dropout, (E) and big too. Label smoothing is left out: it changes the loss that
/// rows are compared by (in the paper too: worse perplexity, better BLEU).
std::vector<Row> rows(const ArmRunner& runner) {
  const EncoderDecoderConfig& base = runner.settings().model;
  std::vector<Row> all;
  const auto add = [&](std::string name, std::string paper, auto change) {
    Arm arm = runner.base(std::move(name));
    change(arm.model);
    all.push_back({std::move(arm), std::move(paper)});
  };
  add("base", "base 25.8", [](EncoderDecoderConfig&) {});
  for (const auto& [heads, paper] : {std::pair(1, "h=1 24.9"), std::pair(2, "h=4 25.5"),
                                     std::pair(8, "h=16 25.8"), std::pair(16, "h=32 25.4")}) {
    add(fmt::format("(A) h={}", heads), paper,
        [h = heads](EncoderDecoderConfig& m) { m.encoder_heads = m.decoder_heads = h; });
  }
  const int key = base.d_model / base.encoder_heads;
  for (const auto& [part, paper] : {std::pair(4, "d_k=16 25.1"), std::pair(2, "d_k=32 25.4")}) {
    add(fmt::format("(B) d_k={}", key / part), paper, [&, p = part](EncoderDecoderConfig& m) {
      m.geometry.d_key = key / p;
      m.geometry.d_value = key;
    });
  }
  for (const auto& [percent, paper] : {std::pair(50, "N=2 23.7"), std::pair(150, "N=8 25.5")}) {
    const int layers = std::max(1, base.encoder_layers * percent / 100);
    if (layers == base.encoder_layers && percent < 100) continue;
    const int n = layers == base.encoder_layers ? layers + 1 : layers;
    add(fmt::format("(C) N={}", n), paper,
        [n](EncoderDecoderConfig& m) { m.encoder_layers = m.decoder_layers = n; });
  }
  add(fmt::format("(C) d={}", base.d_model / 2), "d=256 24.5",
      [](EncoderDecoderConfig& m) { m.d_model /= 2; });
  add(fmt::format("(C) d={}", base.d_model * 2), "d=1024 26.0",
      [](EncoderDecoderConfig& m) { m.d_model *= 2; });
  add(fmt::format("(C) d_ff={}", base.encoder_ff / 2), "d_ff=1024 25.4",
      [](EncoderDecoderConfig& m) { m.encoder_ff = m.decoder_ff = m.encoder_ff / 2; });
  add(fmt::format("(C) d_ff={}", base.encoder_ff * 2), "d_ff=4096 26.2",
      [](EncoderDecoderConfig& m) { m.encoder_ff = m.decoder_ff = m.encoder_ff * 2; });
  if (runner.size() != StudySize::kPaper) return all;
  add("(D) dropout 0", "P_drop=0 24.6", [](EncoderDecoderConfig& m) { m.dropout.residual = 0; });
  add("(D) dropout 0.2", "P_drop=.2 25.5", [](EncoderDecoderConfig& m) { m.dropout.residual = 0.2f; });
  add("(E) learned positions", "learned positions 25.7",
      [](EncoderDecoderConfig& m) { m.positions = Positions::kLearned; });
  add(fmt::format("big: d={}, h={}, d_ff={}, dropout 0.3", base.d_model * 2, base.encoder_heads * 2,
                  base.encoder_ff * 2),
      "big 26.4", [](EncoderDecoderConfig& m) {
        m.d_model *= 2, m.encoder_heads *= 2, m.decoder_heads *= 2;
        m.encoder_ff = m.decoder_ff = m.encoder_ff * 2;
        m.dropout.residual = 0.3f;
      });
  return all;
}

Claim table_in_miniature(ArmRunner& runner) {
  std::vector<Row> all = rows(runner);
  std::vector<Arm*> to_tune;
  for (Row& row : all) to_tune.push_back(&row.arm);
  runner.tune(to_tune);
  Claim claim{.id = "table 3",
              .statement =
                  "The rows of the paper's Table 3 in miniature: every number the same part or multiple of "
                  "the base's.",
              .original_words = "Vaswani et al. 2017, Table 3: newstest2013 BLEU of the base 25.8.",
              .original_statement = OriginalStatement::kNotMade,
              .trained = true};
  const bool paper = runner.size() == StudySize::kPaper;
  Table table{
      "rows (B) start with larger queries and keys than the base, so their difference is not that of d_k "
      "alone",
      {"row", "rate", "params", "loss", "minus base", paper ? "BLEU" : "exact %", "the paper's row"},
      {}};
  const auto base = losses(runner.runs(all[0].arm));
  std::vector<Arm> tuned, heads;
  int agree = 0, clear = 0;
  for (const Row& row : all) {
    tuned.push_back(row.arm);
    const auto& runs = runner.runs(row.arm);
    const Interval difference = difference_of(losses(runs), base);
    const auto score =
        interval_of(of_runs(runs, [&](const ArmRun& run) { return paper ? run.bleu : 100 * run.exact; }));
    table.rows.push_back({row.arm.name, runner.rate_of(row.arm), std::to_string(runs[0].parameters),
                          interval_text(interval_of(losses(runs))),
                          &row == &all[0] ? "" : interval_text(difference), fmt::format("{:.1f}", score.mean),
                          row.paper});
    if (row.arm.name.find("(A)") == 0 || &row == &all[0]) heads.push_back(row.arm);
    if (&row == &all[0]) continue;
    const double there = std::stod(row.paper.substr(row.paper.rfind(' '))) - 25.8;
    const bool decided = difference.low() > 0 || difference.high() < 0;
    clear += decided && there != 0;
    agree += decided && there != 0 && (difference.mean < 0) == (there > 0);
  }
  claim.measured = fmt::format(
      "of {} rows whose difference from the base is clear here, {} go the way they went in the paper", clear,
      agree);
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(loss_plot(runner, tuned, "Table 3 in miniature"));
  claim.plots.push_back(curve_plot(runner, heads, "Row (A): the number of heads at equal cost"));
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {
      {"table 3",
       [](const ArmRunner& r) {
         std::vector<Arm> all;
         for (Row& row : rows(r)) all.push_back(std::move(row.arm));
         return all;
       },
       table_in_miniature, true},
  };
  return kChecks;
}

}  // namespace mh::table3
