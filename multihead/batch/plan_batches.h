// Decides which examples (sentences, pairs of sentences) go into one batch together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mh {

/// The size of an example.
struct ExampleSize {
  int64_t tokens = 0;  // what counts against the limit, and what examples are sorted by
  int64_t width = 0;   // the longest of its sequences, as frameworks that pad count; for kPadded alone
};

struct BatchOptions {
  enum class Order {
    kAsGiven,
    kLongestFirst,  // equal lengths as given
    kShuffled       // similar lengths together, equal lengths in random order; the batches in random order
  };
  enum class Count {
    kTokens,  // the sum of the examples' tokens
    kPadded   // the number of examples times the widest of them
  };
  int64_t max_tokens = 4096;  // most tokens of a batch, unless one example alone has more
  Count count = Count::kTokens;
  Order order = Order::kShuffled;
  uint64_t seed = 1;  // for kShuffled
};

/// Returns a vector of example numbers for each batch: in the chosen order as many as fit, at least one.
/// Every example is in exactly one batch; examples of no tokens are in none. A pure function of its
/// arguments; `epoch` matters for kShuffled only. Throws UsageError when max_tokens < 1.
std::vector<std::vector<int64_t>> plan_batches(std::span<const ExampleSize> examples,
                                               const BatchOptions& options, uint64_t epoch = 0);

}  // namespace mh
