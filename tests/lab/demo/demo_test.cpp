#include "lab/demo/demo.h"

#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

TEST(SlowDemo, RunsFromDataToHeadsAndTakesItsModelAgain) {
  const test::ScratchFolder scratch;
  DemoSettings settings = demo_settings(3);
  settings.folder = scratch / "demo";
  settings.grammar = {.seed = 3, .train = 300, .valid = 1, .test = 23, .compositional = 6};
  settings.translator.updates = 6;
  settings.translator.save_every = 2;
  settings.translator.average = 2;
  settings.translator.encoder_layers = settings.translator.decoder_layers = 1;
  settings.translator.heads = 3;
  const DemoResult result = run_demo(settings);
  EXPECT_EQ(result.ordinary.all, 23);
  EXPECT_EQ(result.verb_object.all, 3);
  EXPECT_EQ(result.depth.all, 3);
  EXPECT_EQ(result.heads.heads.size(), 3u * 3);
  ASSERT_EQ(result.relations.size(), 4u);
  for (const DemoRelation& relation : result.relations) EXPECT_GT(relation.score.support, 0) << relation.what;
  EXPECT_FALSE(result.training.was_finished);
  const DemoResult again = run_demo(settings);
  EXPECT_TRUE(again.training.was_finished);
  EXPECT_EQ(again.aligner.right, result.aligner.right);
  settings.translator.learning_rate = 1e-4;
  EXPECT_THROW(run_demo(settings), UsageError);
}

}  // namespace
}  // namespace mh
