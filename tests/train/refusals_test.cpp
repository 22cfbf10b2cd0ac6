// What a program may pass by mistake to a training: an exception, never an abort.
#include <gmock/gmock.h>

#include "multihead/base/error.h"
#include "multihead/train/checkpoint_store.h"
#include "multihead/train/schedule.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

TEST(Refusals, UpdatesCountFromOne) {
  EXPECT_THROW(Schedule().learning_rate(0), UsageError);
  EXPECT_THROW(Schedule().learning_rate(-3), UsageError);
}

TEST(Refusals, ThereMustBeSomethingToAverage) {
  const test::ScratchFolder folder;
  EncoderDecoder model(small_shape().config());
  EXPECT_THROW(CheckpointStore(folder.path()).average({}, named_parameters(model)), UsageError);
}

TEST(Refusals, BothSidesOfACorpusHaveAsManySentences) {
  ParallelTokens uneven{.source = {{3, 0}, {4, 0}}, .target = {{3, 0}}};
  EXPECT_THROW(sizes_of(uneven), ShapeError);
  EXPECT_THROW(longer_than(uneven, 1), ShapeError);
}

}  // namespace
}  // namespace mh
