// What must never happen: a read beyond the end, a NaN from behind a mask, results that depend on the
// threads, impossible inputs that are accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "attention_case.h"
#include "multihead/base/thread_pool.h"
#include "on_target.h"

namespace mh {
namespace {

/// Memory whose end is the end of the readable world.
class GuardedFloats {
 public:
  explicit GuardedFloats(ConstMatrixView view) : rows_(view.rows), cols_(view.cols) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(view.rows * view.cols) * sizeof(float);
    size_ = (bytes + page - 1) / page * page + page;
    base_ =
        static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + size_ - page, page, PROT_NONE);
    data_ = reinterpret_cast<float*>(base_ + size_ - page - bytes);
    for (int64_t i = 0; i < view.rows; ++i) std::copy_n(view.row(i), view.cols, data_ + i * view.cols);
  }
  ~GuardedFloats() { munmap(base_, size_); }
  GuardedFloats(const GuardedFloats&) = delete;
  GuardedFloats& operator=(const GuardedFloats&) = delete;
  MatrixView view() const { return {data_, rows_, cols_}; }

 private:
  int64_t rows_, cols_;
  char* base_;
  size_t size_;
  float* data_;
};

TEST(AttentionSafety, NothingIsReadOrWrittenBehindTheEnd) {
  for (const std::string& target : dispatch_targets()) {
    const OnTarget only(target);
    for (const int size : {1, 3, 8, 31, 32, 33, 80}) {
      for (const int length : {1, 2, 5, 7, 15, 17, 33}) {
        AttentionCase c;
        c.queries = {length};
        c.keys = {length + 2};
        c.heads = c.key_heads = c.value_heads = 1;
        c.d_key = size;
        c.d_value = size;
        c.mask = MaskChoice::kCausal;
        AttentionProblem p(c);
        const GuardedFloats q(p.in.q), k(p.in.k), v(p.in.v), o(p.output), d_o(p.d_output);
        const GuardedFloats d_q(p.in.q), d_k(p.in.k), d_v(p.in.v);
        p.in.q = q.view();
        p.in.k = k.view();
        p.in.v = v.view();
        attention_forward(p.in, {o.view(), p.lse.data(), p.weights.data()});
        attention_backward(p.in, {o.view(), p.lse.data(), d_o.view(), d_q.view(), d_k.view(), d_v.view()});
      }
    }
  }
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

bool finite(ConstMatrixView view, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < view.cols; ++j) {
      if (!std::isfinite(view(i, j))) return false;
    }
  }
  return true;
}

class NanBehindMask : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Lengths, NanBehindMask, testing::Values(3, 6, 15, 33, 70, 300));

TEST_P(NanBehindMask, DoesNotReachWhatMayNotSeeIt) {
  const int length = GetParam();
  for (const float poison : {kNan, std::numeric_limits<float>::infinity()}) {
    AttentionCase c;
    c.queries = c.keys = {length};
    c.heads = 2;
    c.key_heads = c.value_heads = 2;
    c.d_key = 8;
    c.d_value = 19;
    c.mask = MaskChoice::kCausal;
    AttentionProblem p(c);
    // The last position is poisoned; only the last query may see it.
    const int64_t last = length - 1;
    for (int64_t j = 0; j < p.in.q.cols; ++j) p.q()(last, j) = p.k()(last, j) = poison;
    for (int64_t j = 0; j < p.in.v.cols; ++j) p.v()(last, j) = p.d_output(last, j) = poison;
    p.forward();
    EXPECT_TRUE(finite(p.output, 0, last));
    EXPECT_FALSE(finite(p.output, last, length)) << "what is visible surfaces";
    for (int64_t i = 0; i < last; ++i) ASSERT_EQ(p.weights[static_cast<size_t>(i * length + last)], 0.0f);
    p.backward();
    EXPECT_TRUE(finite(p.d_q, 0, last));
    EXPECT_FALSE(finite(p.d_q, last, length));
  }
}

TEST_P(NanBehindMask, AQueryThatSeesNothingHarmsNothing) {
  const int length = GetParam();
  AttentionCase c;
  c.queries = c.keys = {length};
  c.d_key = 8;
  c.d_value = 8;
  AttentionProblem p(c);
  const int64_t words = length / 64 + 1;
  std::vector<uint64_t> bits(static_cast<size_t>(length * words), ~uint64_t{0});
  for (int64_t i = 0; i < length; ++i)
    bits[static_cast<size_t>(i * words)] &= ~uint64_t{2};  // nobody sees key 1
  std::fill_n(bits.begin() + 2 * words, words, 0);         // query 2 sees nobody
  p.in.mask = Mask::dense({bits.data(), words});
  for (int64_t j = 0; j < p.in.q.cols; ++j) p.q()(2, j) = p.k()(1, j) = p.v()(1, j) = p.d_output(2, j) = kNan;
  p.forward();
  p.backward();
  EXPECT_TRUE(finite(p.output, 0, length));
  EXPECT_TRUE(finite(p.d_q, 0, length));
  EXPECT_TRUE(finite(p.d_k, 0, length));
  EXPECT_TRUE(finite(p.d_v, 0, length));
  for (int64_t j = 0; j < p.output.cols; ++j) {
    EXPECT_EQ(p.output(2, j), 0.0f);
    EXPECT_EQ(p.d_q(2, j), 0.0f);
    EXPECT_EQ(p.d_k(1, j), 0.0f);
    EXPECT_EQ(p.d_v(1, j), 0.0f);
  }
  EXPECT_EQ(p.lse[4], -std::numeric_limits<float>::infinity());
}

TEST(AttentionSafety, AnyNumberOfThreadsGivesTheSameBits) {
  AttentionCase c;
  c.queries.clear();
  for (int s = 0; s < 40; ++s) c.queries.push_back(1 + s * 7 % 43);
  c.queries.push_back(700);
  c.keys = c.queries;
  c.queries.insert(c.queries.end(), {3, 1, 2});  // few queries, many keys: cut by the keys
  c.keys.insert(c.keys.end(), {1500, 256, 700});
  c.heads = 4;
  c.key_heads = 2;
  c.value_heads = 4;
  c.d_key = c.d_value = 32;
  c.mask = MaskChoice::kCausal;
  c.gates = GateChoice::kOfEach;
  const int before = thread_count();
  const auto bytes = [&](int threads) {
    set_thread_count(threads);
    AttentionProblem p(c);
    p.forward();
    p.backward();
    std::vector<float> all(p.lse);
    for (const auto* data : {&p.d_gate, &p.d_slopes, &p.d_by_distance}) {
      all.insert(all.end(), data->begin(), data->end());
    }
    for (const MatrixView& view : {p.output, p.d_q, p.d_k, p.d_v, p.d_bias.by_query, p.d_bias.by_key}) {
      all.insert(all.end(), view.data, view.data + view.rows * view.stride);
    }
    return all;
  };
  for (const float rate : {0.1f, 0.0f}) {
    c.rate = rate;
    c.bias = {.slopes = rate > 0, .by_distance = rate > 0, .by_query = rate > 0, .by_key = rate > 0};
    const auto one = bytes(1);
    for (const int threads : {2, 3, 7, 2}) {
      const auto more = bytes(threads);
      EXPECT_EQ(std::memcmp(one.data(), more.data(), one.size() * sizeof(float)), 0) << threads << " threads";
    }
  }
  set_thread_count(before);
}

TEST(AttentionSafety, AnImpossibleDescriptionNamesItsField) {
  AttentionCase c;
  c.by_rows = true;
  const auto expect = [&](const char* words, const std::function<void(AttentionProblem&)>& spoil) {
    AttentionProblem p(c);
    spoil(p);
    try {
      p.forward(false);
      FAIL() << "expected: " << words;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr(words));
    }
  };
  std::vector<int32_t> offsets;
  std::vector<float> gate(3);
  std::vector<int32_t> rows(7, 10);
  expect("heads is 0", [](auto& p) { p.in.heads = 0; });
  expect("key_heads is 3", [](auto& p) { p.in.key_heads = 3; });
  expect("value_heads is 0", [](auto& p) { p.in.value_heads = 0; });
  expect("d_key is 0", [](auto& p) { p.in.d_key = 0; });
  expect("d_value is 1025", [](auto& p) { p.in.d_value = 1025; });
  expect("q has 15 columns", [](auto& p) { p.in.q.cols = 15; });
  expect("k has 17 columns", [](auto& p) { p.in.k.cols = 17; });
  expect("v has 10 rows, 16 columns and stride 3", [](auto& p) { p.in.v.stride = 3; });
  expect("v has 9 rows", [](auto& p) { p.in.v.rows = 9; });
  expect("q has 5 rows but no data", [](auto& p) { p.in.q.data = nullptr; });
  expect("query_offsets must begin with 0", [](auto& p) { p.in.query_offsets = {}; });
  expect("query_offsets end at 4", [&](auto& p) { p.in.query_offsets = offsets = {0, 4}; });
  expect("key_offsets fall from 9 to 7", [&](auto& p) { p.in.key_offsets = offsets = {0, 9, 7}; });
  expect("key_offsets describe 2 sequences", [&](auto& p) { p.in.key_offsets = offsets = {0, 3, 7}; });
  expect("key_rows holds row 10", [&](auto& p) { p.in.key_rows = rows; });
  rows[1] = -1;
  expect("key_rows holds row -1", [&](auto& p) { p.in.key_rows = rows; });
  expect("scale is nan", [](auto& p) { p.in.scale = kNan; });
  expect("gate is [1,3], expected", [&](auto& p) { p.in.gate = {gate.data(), 1, 3}; });
  expect("gate is [3,1], expected", [&](auto& p) { p.in.gate = {gate.data(), 3, 1}; });
  expect("bias.slopes has 3 numbers", [&](auto& p) { p.in.bias.slopes = gate; });
  expect("bias.distance_clip is -1", [&](auto& p) {
    p.in.bias.by_distance = gate;
    p.in.bias.distance_clip = -1;
  });
  expect("bias.distance_columns is 2", [&](auto& p) {
    p.in.bias.by_distance = gate;
    p.in.bias.distance_columns = 2;
  });
  expect("bias.by_distance has 3 numbers", [&](auto& p) {
    p.in.bias.by_distance = gate;
    p.in.bias.distance_columns = 1;
  });
  expect("bias.elements has 3 numbers", [&](auto& p) { p.in.bias.elements = gate; });
  expect("bias.by_query has 2 rows", [&](auto& p) { p.in.bias.by_query = {gate.data(), 2, 1}; });
  expect("dropout.rate 1 ", [](auto& p) { p.in.dropout.rate = 1; });
  expect("dropout.rate nan", [](auto& p) { p.in.dropout.rate = kNan; });
  expect("dropout.sentences has 0", [](auto& p) {
    p.in.dropout.rate = 0.5f;
    p.in.dropout.sentences = {};
  });
  const uint64_t word = 0;
  expect("mask has 0 words", [&](auto& p) { p.in.mask = Mask::dense({&word, 0}); });
  expect("output is [5,15]", [](auto& p) { p.output.cols = 15; });
  AttentionProblem p(c);
  EXPECT_THROW(p.backward(), ShapeError) << "key_rows have no gradient";
  p.want_statistics();
  EXPECT_THROW(attention_forward(p.in, {.output = p.output, .statistics = p.statistics}), ShapeError)
      << "statistics need lse";
  c.by_rows = false;
  AttentionProblem b(c);
  b.d_v.rows = 3;
  try {
    b.backward();
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("d_v is [3,16]"));
  }
}

}  // namespace
}  // namespace mh
