// Batches of sequences, teacher forcing, and which ids are refused.
#include "multihead/batch/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "multihead/batch/check_ids.h"
#include "multihead/batch/teacher_forced.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Lists = std::vector<std::vector<int32_t>>;

TEST(Batch, LaysSequencesEndToEndAndKeepsItsMemory) {
  Batch batch;
  batch.add(std::vector<int32_t>{3, 1, 4}, 17);
  batch.add({}, 2);
  batch.add(std::vector<int32_t>{1, 5}, 11);
  const Sequences view = batch.view();
  EXPECT_THAT(view.ids, ElementsAre(3, 1, 4, 1, 5));
  EXPECT_THAT(view.ragged->offsets(), ElementsAre(0, 3, 3, 5));
  EXPECT_THAT(view.sentences, ElementsAre(17, 2, 11));
  const int32_t* memory = batch.ids.data();
  batch.clear();
  EXPECT_THAT(batch.ids, IsEmpty());
  EXPECT_THAT(batch.sentences, IsEmpty());
  EXPECT_EQ(batch.ragged, Ragged());
  batch.add(std::vector<int32_t>{2, 7, 1}, 5);
  EXPECT_EQ(batch.ids.data(), memory);
}

TEST(Batch, OfListsNumbersThemFromZero) {
  const Batch batch({{6, 7}, {8}});
  EXPECT_THAT(batch.ids, ElementsAre(6, 7, 8));
  EXPECT_THAT(batch.sentences, ElementsAre(0, 1));
}

TEST(Batch, TokensWithoutTypesAreOfTypeZero) {
  Batch batch;
  batch.add(std::vector<int32_t>{5, 7, 2}, 4);
  EXPECT_TRUE(batch.view().types.empty());
  batch.add(std::vector<int32_t>{9, 2}, 1, std::vector<int32_t>{0, 1});
  batch.add(std::vector<int32_t>{3}, 8);
  EXPECT_EQ(batch.types, (std::vector<int32_t>{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(batch.view().types.data(), batch.types.data());
  batch.clear();
  EXPECT_TRUE(batch.view().types.empty());
}

TEST(TeacherForced, ShiftsTargetsThatCarryTheirEnd) {
  TeacherForced forced;
  for (int again = 0; again < 2; ++again) {
    forced.clear();
    forced.add(std::vector<int32_t>{10, 11, 0}, 17, {.start_id = 2});
    forced.add(std::vector<int32_t>{9, 0}, 3, {.start_id = 2});
    EXPECT_THAT(forced.input.ids, ElementsAre(2, 10, 11, 2, 9));
    EXPECT_THAT(forced.next, ElementsAre(10, 11, 0, 9, 0));
    EXPECT_THAT(forced.input.ragged.offsets(), ElementsAre(0, 3, 5));
    EXPECT_THAT(forced.input.sentences, ElementsAre(17, 3));
  }
}

TEST(TeacherForced, AppendsTheEndWhereItIsAskedTo) {
  const TeacherForced forced = teacher_forced(Lists{{5, 6}, {}}, {.start_id = 2, .end_id = 0});
  EXPECT_THAT(forced.input.ids, ElementsAre(2, 5, 6, 2));
  EXPECT_THAT(forced.next, ElementsAre(5, 6, 0, 0));
  EXPECT_THAT(forced.input.sentences, ElementsAre(0, 1));
}

TEST(TeacherForced, RefusesATargetThatNothingFollows) {
  EXPECT_THROW(teacher_forced(Lists{{5}, {}}, {.start_id = 2}), UsageError);
}

TEST(CheckIds, NamesTheSideTheSequenceAndWhatIsWrong) {
  const IdLimits limits{.what = "source", .longest = 4, .vocabulary = 23, .may_be_empty = false};
  const auto message = [&](const Lists& sequences) -> std::string {
    try {
      check_ids(sequences, limits);
    } catch (const ShapeError& error) {
      return std::string("ShapeError ") + error.what();
    } catch (const UsageError& error) {
      return std::string("UsageError ") + error.what();
    }
    return "";
  };
  EXPECT_EQ(message({{1, 2, 3, 22}, {0}}), "");
  EXPECT_EQ(message({{1}, {1, 2, 3, 4, 5}}),
            "ShapeError source 2: expected at most 4 tokens, as many as the model reads, got 5; cut it");
  EXPECT_EQ(message({{1, 23}}),
            "UsageError source 1: expected token ids from 0 to 22, got 23; is it the right model?");
  EXPECT_EQ(message({{1}, {2}, {-1}}),
            "UsageError source 3: expected token ids from 0 to 22, got -1; is it the right model?");
  EXPECT_EQ(message({{1}, {}}), "UsageError source 2: no tokens, not even the end token");
  check_ids(Lists{{}}, {.vocabulary = 1});
}

}  // namespace
}  // namespace mh
