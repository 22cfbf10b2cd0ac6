// The score of a model against the number of heads that are muted, in some order: `multihead heads importance --curve`.
//
// The order comes from one half of the corpus (texts 1, 3, 5, ...), the scores from the other one, so that no head is kept
// because of the sentences on which it is scored. The least important head goes first; the order is made once, as that of Michel
// et al. 2019, section 4.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/importance/heads_importance.h"

namespace mh {

struct PruningCurveOptions {
  /// Scores besides that of the whole model, at equal steps, from 1 to 10,000; the last one without any head.
  int32_t points = 10;
  /// Orders at random, at most 1000, whose mean and interval stand beside; 0: none. ScoredTextsOptions::seed is theirs, too.
  int32_t random_orders = 10;

  template <class V>
  void visit(V& v) {
    v("points", points, {.low = 1, .high = 10'000},
      {.group = kImportanceGroup, .help = "Steps of the curve", .rare = true});
    v("random_orders", random_orders, {.low = 0, .high = 1000},
      {.group = kImportanceGroup, .help = "Random orders beside it", .rare = true});
  }
};

/// All settings of `multihead heads importance`.
struct ImportanceSettings {
  ImportanceOptions importance = {};
  bool curve = false;
  PruningCurveOptions steps = {};  // of the curve

  template <class V>
  void visit(V& v) {
    importance.visit(v);
    v("curve", curve, {},
      {.group = kImportanceGroup,
       .help = "Rank heads on lines 1, 3, 5, ...; print the score on the others as heads are muted, the "
               "least important first"});
    steps.visit(v);
  }
};

/// The score with so many heads muted.
struct PruningPoint {
  int64_t muted = 0;
  Interval score =
      {};              // mean over texts, per predicted token (of vectors: their cosine to the whole model's)
  Interval loss = {};  // of the whole model's score less this one, paired by text
  Interval random = {};  // mean over the random orders of their mean loss
};

struct PruningCurve {
  ImportanceReport importance = {};  // of the first half, with the order
  int64_t scored = 0;                // texts of the other half
  std::vector<HeadName> order = {};  // as they are muted
  std::vector<PruningPoint> points = {};
};

/// Throws UsageError on options out of range, on ImportanceMeasure::kAlone, which gives no order to mute heads in, on fewer than
/// two texts (three where the measure compares vectors), and as heads_importance() does. With `within_attentions` every attention loses its least head before any loses a second one.
PruningCurve pruning_curve(const ScoredModel& model, HeadsCorpus& corpus, const ImportanceOptions& options,
                           const PruningCurveOptions& curve = {});

/// The mean score of each text with these heads muted, per predicted token. whole: [texts, dimension] of ScoreKind::kVectors, the
/// whole model's vectors.
std::vector<double> scores_without(const ScoredModel& model, const ScoredTexts& texts,
                                   const std::vector<HeadName>& muted, const ObserveOptions& read,
                                   ConstMatrixView whole);

}  // namespace mh
