// The rows of Table 3 of Vaswani et al. 2017, and the arms that stand for them here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/studies/arms.h"

namespace mh::table3 {

/// What the paper reports of a row: newstest2013, perplexity a token and BLEU.
struct Published {
  const char* row;  // "h=1"
  double perplexity = 0, bleu = 0;
};
inline constexpr Published kPublishedBase{"base", 4.92, 25.8};

struct Row {
  Arm arm;
  Published paper;
  std::optional<Arm> usual = {};  // from its usual start, where that is not the base's
};
/// The base first: 3 + 3 layers and 8 heads, half of the paper's 6 layers, so that every row is the paper's own part
/// or multiple of it. Rows (A) to (D). At the size of the paper also learned positions (E) and big.
std::vector<Row> rows(const ArmRunner& runner);

/// A difference from the base, here and in the paper; better is below 0 for losses and perplexity, above 0 for BLEU.
struct Differences {
  std::vector<double> here;  // by seed
  double paper = 0;
};
struct Agreement {
  int clear = 0;  // rows that differ clearly here (95 % interval) and by more than `least` in the paper
  int agree = 0;  // of these, those that go the same way
  // The probabilities of at least and of at most so many, were each way as likely.
  double chance = 1, chance_of_fewer = 1;
};
Agreement agreement(const std::vector<Differences>& rows, double least);

}  // namespace mh::table3
