// The same checks as the fuzzer (tests/fuzz) makes, a fixed number of times with fixed bytes.
#include <gtest/gtest.h>

#include "attention_try.h"
#include "tests/support/thread_sanitizer.h"

namespace mh {
namespace {

/// The bytes of try `n`.
std::vector<uint8_t> bytes_of(uint64_t n) {
  Random random(4, n);
  std::vector<uint8_t> bytes(64);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.bits());
  return bytes;
}

TEST(AttentionRandom, ThousandsOfDescriptionsAreRightOrAnError) {
  constexpr uint64_t kTries = kThreadSanitizer ? 300 : 2000;
  uint64_t possible = 0;
  for (uint64_t n = 0; n < kTries; ++n) {
    try {
      possible += try_attention(bytes_of(n)) ? 1 : 0;
    } catch (const Wrong& e) {
      ADD_FAILURE() << "try " << n << ": " << e.what();
    }
  }
  // Both kinds were tried, and often: about four in five descriptions are possible.
  EXPECT_GT(possible, kTries / 2);
  EXPECT_LT(possible, kTries * 9 / 10);
}

}  // namespace
}  // namespace mh
