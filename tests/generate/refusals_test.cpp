// What a program may pass by mistake to search and align: an exception, never an abort.
#include <gmock/gmock.h>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/generate/align.h"
#include "multihead/generate/beam_search.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/models/decoding.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class Refusals : public testing::Test {
 protected:
  Refusals() : model(small_shape().config()), source(random_sources(5, {3, 5})) { model.initialise(1); }

  Tape tape;
  EncoderDecoder model;
  const Batch source;
};

TEST_F(Refusals, SearchAndAlignmentNeedAsManyTargetsAsSources) {
  Decoding decoding(model, Context{.tape = tape});
  const std::vector<std::vector<int32_t>> one(1);
  EXPECT_THAT([&] { beam_search(decoding, source.view(), {}, one); },
              ThrowsMessage<ShapeError>(HasSubstr("1 prefixes for 2 sources")));
  EXPECT_THAT([&] { align(model, Context{.tape = tape}, source.view(), one); },
              ThrowsMessage<ShapeError>(HasSubstr("1 targets for 2 sources")));
}

TEST_F(Refusals, DecodingNeedsAContextThatEvaluatesAndAsManyOfEach) {
  Tape recording(Tape::Mode::kRecord);
  EXPECT_THROW(Decoding(model, Context{.tape = recording}), UsageError);
  EXPECT_THROW(Decoding(model, Context{.tape = tape, .dropout = DropoutKey{1, 1}}), UsageError);
  Decoding decoding(model, Context{.tape = tape}, source.view());
  const std::vector<int32_t> two{kPad, kPad}, sentences{0, 1}, one{0};
  EXPECT_THROW(decoding.step(two, {}, one), ShapeError);
  decoding.step(two, {}, sentences);
  std::vector<Candidate> out(2);
  for (const int32_t candidates : {0, -1, 1 << 20}) {
    EXPECT_THAT([&] { decoding.next_words().best({.candidates = candidates}, out, decoding.scratch()); },
                ThrowsMessage<UsageError>(HasSubstr("candidates: expected 1 to ")));
  }
  EXPECT_THROW(decoding.step(two, one, sentences), ShapeError);
}

TEST_F(Refusals, ModelsAreComparedOnPairs) {
  EXPECT_THROW(compare_models(model, model, random_sources(5, {3, 5}), random_sources(5, {3})), UsageError);
}

}  // namespace
}  // namespace mh
