// A caller ends attention's passes early, on any number of threads; the next call is as if nothing had been.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/base/stop.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention.h"

namespace mh {
namespace {

class StoppedAttention : public testing::TestWithParam<int> {
 protected:
  static constexpr int64_t kRows = 1511, kWidth = 3 * 17;

  StoppedAttention() {
    set_thread_count(GetParam());
    Random random(7);
    for (std::vector<float>* numbers : {&q, &k, &v, &d_output}) {
      for (int64_t i = 0; i < kRows * kWidth; ++i) numbers->push_back(static_cast<float>(random.normal()));
    }
    in.q = view(q);
    in.k = view(k);
    in.v = view(v);
    in.heads = in.key_heads = in.value_heads = 3;
    in.d_key = in.d_value = 17;
    in.query_offsets = in.key_offsets = offsets;
    in.mask = Mask::causal();
    attention_forward(in, {.output = {output.data(), kRows, kWidth}, .lse = lse.data()});
  }
  ~StoppedAttention() override { set_thread_count(before); }

  static ConstMatrixView view(const std::vector<float>& numbers) { return {numbers.data(), kRows, kWidth}; }
  std::vector<float> gradients() {
    std::vector<float> all(3 * kRows * kWidth);
    const auto part = [&](int64_t i) { return MatrixView(all.data() + i * kRows * kWidth, kRows, kWidth); };
    attention_backward(in, {.output = view(output),
                            .lse = lse.data(),
                            .d_output = view(d_output),
                            .d_q = part(0),
                            .d_k = part(1),
                            .d_v = part(2)});
    return all;
  }

  const int before = thread_count();
  const std::vector<int32_t> offsets{0, 11, 1500, 1511};
  std::vector<float> q, k, v, d_output, output = std::vector<float>(kRows * kWidth),
                                        lse = std::vector<float>(kRows * 3);
  AttentionInputs in;
};
INSTANTIATE_TEST_SUITE_P(Threads, StoppedAttention, testing::Values(1, 2, 5));

TEST_P(StoppedAttention, GradientsEndWhenTheCallerAsks) {
  const std::vector<float> whole = gradients();
  int asked = 0;
  {
    const StopScope scope([&] {
      ++asked;
      return true;
    });
    for (int i = 0; i < 23; ++i) EXPECT_THROW(gradients(), Interrupted);
  }
  EXPECT_EQ(asked, 1);
  for (int i = 0; i < 5; ++i) {  // between two calls, or in the middle of one
    asked = 0;
    const StopScope scope([&] { return ++asked > 2; });
    EXPECT_THROW(while (true) gradients(), Interrupted);
  }
  {
    const StopScope scope([]() -> bool { throw UsageError("a handler's own"); });
    EXPECT_THROW(gradients(), UsageError);
  }
  {
    const StopScope scope([] { return false; });
    EXPECT_EQ(gradients(), whole);
  }
  EXPECT_EQ(gradients(), whole);
}

}  // namespace
}  // namespace mh
