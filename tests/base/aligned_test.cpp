#include "multihead/base/aligned.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace mh {
namespace {

TEST(AlignedBuffer, StartsOnACacheLineAndWithManyBytesOnALargePage) {
  for (const int64_t bytes : {1, 63, 4097, (2 << 20) - 1, (2 << 20) + 7, 5'000'011}) {
    AlignedBuffer<char> buffer(bytes);
    const auto address = reinterpret_cast<uintptr_t>(buffer.data());
    EXPECT_EQ(address % (bytes < (2 << 20) ? 64 : 2 << 20), 0) << bytes;
    buffer[0] = 'a', buffer[bytes - 1] = 'z';
    const AlignedBuffer<char> copy = buffer;
    EXPECT_EQ(copy[bytes - 1], 'z');
  }
}

TEST(AlignedBuffer, KeepsItsMemoryWhenItShrinks) {
  AlignedBuffer<int> buffer(1000);
  const int* before = buffer.data();
  buffer.resize(10);
  buffer.resize(1000);
  EXPECT_EQ(buffer.data(), before);
  buffer.resize(1'000'000);
  EXPECT_EQ(buffer.size(), 1'000'000);
}

}  // namespace
}  // namespace mh
