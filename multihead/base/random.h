// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
// 3"). A number is a function of a key and a counter, so neither batching nor threads can change it.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace mh {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

/// Ten rounds of Philox: four independent uniform 32-bit numbers.
inline PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// A stream of random numbers. (seed, stream) identifies it and position() says how many numbers were read,
/// so that it can be resumed with seek().
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, stream_(stream) {}

  /// Uniform over all 32-bit numbers.
  uint32_t bits() {
    const uint64_t block = position_ / 4;
    const auto word = static_cast<size_t>(position_ % 4);
    if (word == 0 || !filled_) {
      block_ = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                       static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                      key_);
      filled_ = true;
    }
    ++position_;
    return block_[word];
  }
  /// Uniform in [0, 1), 53 bits.
  double uniform() {
    const uint64_t high = bits() >> 5, low = bits() >> 6;
    return static_cast<double>((high << 26) | low) * 0x1p-53;
  }
  /// Uniform in [0, n). REQUIRES: n > 0. Unbiased (Lemire 2019).
  uint32_t below(uint32_t n) {
    uint64_t product = uint64_t{bits()} * n;
    if (static_cast<uint32_t>(product) < n) {
      const uint32_t threshold = (0u - n) % n;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{bits()} * n;
    }
    return static_cast<uint32_t>(product >> 32);
  }
  /// Normal with mean 0 and variance 1 (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  /// Shuffles a range that has [] and size().
  template <class Range>
  void shuffle(Range& range) {
    for (auto i = range.size(); i > 1; --i) {
      std::swap(range[i - 1], range[below(static_cast<uint32_t>(i))]);
    }
  }

  uint64_t position() const { return position_; }
  void seek(uint64_t position) {
    position_ = position;
    filled_ = false;
  }

 private:
  PhiloxKey key_;
  uint64_t stream_;
  uint64_t position_ = 0;
  PhiloxCounter block_{};
  bool filled_ = false;
};

}  // namespace mh
