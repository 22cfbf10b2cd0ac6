// What ranks settle together, on threads as ranks.
#include "multihead/distributed/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/distributed/message.h"
#include "tests/support/thread_group.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string message_of(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

template <class E>
bool is(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const E&) {
    return true;
  } catch (...) {
    return false;
  }
  return false;
}

TEST(Message, ComesBackAsItWasWritten) {
  MessageWriter writer;
  const std::vector<int32_t> numbers{3, -1, 7};
  writer.add(2.5), writer.add(std::string_view("a\0b", 3)), writer.add(std::string_view());
  writer.add(std::span<const int32_t>(numbers)), writer.add(int64_t{-5});
  MessageReader reader(writer.bytes());
  EXPECT_EQ(reader.number<double>(), 2.5);
  EXPECT_EQ(reader.text(), std::string_view("a\0b", 3));
  EXPECT_EQ(reader.text(), "");
  EXPECT_EQ(reader.numbers<int32_t>(), numbers);
  EXPECT_FALSE(reader.empty());
  EXPECT_EQ(reader.number<int64_t>(), -5);
  EXPECT_TRUE(reader.empty());
}

TEST(Message, ThatEndsTooEarlyIsAnErrorAtEveryByte) {
  MessageWriter writer;
  writer.add(std::string_view("seven b")), writer.add(1.0);
  for (size_t size = 0; size < writer.bytes().size(); ++size) {
    MessageReader reader(std::string_view(writer.bytes()).substr(0, size));
    EXPECT_THROW(
        {
          reader.text();
          reader.number<double>();
        },
        InternalError)
        << size;
  }
}

TEST(Agreement, EveryRankGetsWhatAllGave) {
  for (const int size : {1, 2, 5}) {
    ThreadGroup(size).run([&](ProcessGroup& group) {
      const auto all = agree_or_fail(group, std::string(static_cast<size_t>(group.rank()), 'x'));
      ASSERT_EQ(static_cast<int>(all.size()), size);
      for (int r = 0; r < size; ++r) EXPECT_EQ(all[static_cast<size_t>(r)].size(), static_cast<size_t>(r));
      EXPECT_EQ(of_first_rank(group, group.rank() == 0 ? "first" : "other"), "first");
      EXPECT_TRUE(any_rank(group, group.rank() == size - 1));
      EXPECT_FALSE(any_rank(group, false));
    });
  }
}

TEST(Agreement, AFailureOfOneRankIsThrownOnAllAsTheClassThatItWas) {
  const auto thrown = ThreadGroup(3).outcomes([](ProcessGroup& group) {
    if (group.rank() == 2) {
      const FileError failure("cannot read the text");
      tell_failure(group, failure);
      throw failure;
    }
    agree_or_fail(group, "well");
    ADD_FAILURE() << "went on";
  });
  for (const size_t rank : {0, 1}) {
    EXPECT_TRUE(is<FileError>(thrown[rank]));
    EXPECT_TRUE(is<AgreedFailure>(thrown[rank]));
    EXPECT_EQ(message_of(thrown[rank]), "rank 2: cannot read the text");
  }
  EXPECT_FALSE(is<AgreedFailure>(thrown[2]));
}

TEST(Agreement, OfSeveralFailuresTheLowestRanksIsTold) {
  const auto thrown = ThreadGroup(4).outcomes([](ProcessGroup& group) {
    if (group.rank() == 1) return tell_failure(group, std::bad_alloc());
    if (group.rank() == 3) return tell_failure(group, UsageError("three"));
    agree_or_fail(group, "");
  });
  EXPECT_EQ(message_of(thrown[0]), "rank 1: out of memory");
  EXPECT_EQ(message_of(thrown[2]), "rank 1: out of memory");
}

TEST(CheckSame, NamesTheRankAndAllThatDiffers) {
  const auto values = [](ProcessGroup& group, int other) {
    const bool differs = group.rank() == other;
    check_same(
        group,
        {{"`seed`", differs ? "7" : "3"}, {"`lowercase`", "true"}, {"`geometry`", differs ? "wide" : ""}});
  };
  EXPECT_NO_THROW(ThreadGroup(3).run([&](ProcessGroup& group) { values(group, -1); }));
  const auto thrown = ThreadGroup(3).outcomes([&](ProcessGroup& group) { values(group, 2); });
  for (const auto& error : thrown) {
    EXPECT_TRUE(is<UsageError>(error));
    EXPECT_THAT(message_of(error), StartsWith("`seed` is 7 on rank 2 and 3 on rank 0; "));
    EXPECT_THAT(message_of(error), HasSubstr("`geometry` is wide on rank 2 and not given on rank 0"));
    EXPECT_THAT(message_of(error), testing::Not(HasSubstr("lowercase")));
  }
}

TEST(OneProcess, IsAGroup) {
  OneProcess alone;
  std::vector<float> values{1, 2};
  alone.sum(values, SumOrder::kFixedTree);
  EXPECT_THAT(values, ElementsAre(1, 2));
  EXPECT_THAT(alone.agree("x"), ElementsAre("x"));
  EXPECT_NO_THROW(tell_failure(alone, Error("nobody hears")));
}

}  // namespace
}  // namespace mh
