// Regularisers that make heads differ, in training.
#include <gtest/gtest.h>

#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

class DisagreementTraining : public testing::TestWithParam<Disagreement> {
 protected:
  static double alike_after(float weight) {
    TranslatorShape shape = small_shape();
    shape.dropout = {};
    EncoderDecoder model(shape.config());
    model.initialise(3);
    SmallOptions options = small_options();
    options.translation.disagreement = GetParam();
    options.translation.disagreement_weight = weight;
    const TrainingCorpus corpus = small_corpus();
    SmallTraining training(model, corpus, options);
    double last = 0;
    for (int i = 0; i < 40; ++i) {
      const UpdateReport report = training.trainer.update();
      EXPECT_TRUE(report.finite);
      last = report.head_similarity / static_cast<double>(report.target_tokens);
    }
    return last;
  }
};

TEST_P(DisagreementTraining, LeavesHeadsLessAlike) {
  const double with = alike_after(5), without = alike_after(0);
  EXPECT_GT(with, 0);
  EXPECT_LT(with, 0.95 * without);  // a query that sees one key has equal heads, whatever is learned
}

TEST_P(DisagreementTraining, DoesNotDependOnHowSentencesLieInBatches) {
  const TrainingCorpus corpus = small_corpus();
  std::vector<UpdateReport> reports;
  for (const bool accumulate : {false, true}) {
    EncoderDecoder model(small_shape().config());
    model.initialise(3);
    SmallOptions options = small_options();
    options.translation.batches.max_tokens = accumulate ? 40 : 100000;
    options.trainer.accumulate = accumulate ? 1000 : 1;
    options.translation.disagreement = GetParam();
    options.translation.disagreement_weight = 2;
    SmallTraining training(model, corpus, options);
    reports.push_back(training.trainer.update());
  }
  EXPECT_GT(reports[0].head_similarity, 0);
  EXPECT_NEAR(reports[0].head_similarity, reports[1].head_similarity, 1e-5 * reports[0].head_similarity);
  EXPECT_NEAR(reports[0].gradient_norm, reports[1].gradient_norm, 1e-5 * reports[0].gradient_norm);
}

INSTANTIATE_TEST_SUITE_P(Forms, DisagreementTraining,
                         testing::Values(Disagreement{.subspace = true}, Disagreement{.positions = true},
                                         Disagreement{.output = true}, Disagreement{.written = true},
                                         Disagreement{.subspace = true, .output = true},
                                         Disagreement{.subspace = true, .positions = true, .output = true}));

}  // namespace
}  // namespace mh
