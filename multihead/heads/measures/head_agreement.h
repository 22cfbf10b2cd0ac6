// How often two heads choose the same key for the same query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace mh {

/// Counts this for all pairs of heads whose queries and keys are the same tokens. They are compared batch by batch, and
/// only counts are kept.
class HeadAgreement {
 public:
  /// chosen: [heads, queries of a batch], the key that each head reads most; -1: none. The next call for a layer begins a batch.
  void add(int layer, int heads, std::vector<int32_t> chosen);
  /// Counts the last batch too.
  void finish();

  /// A head, or how many queries there were for which it and another one chose the same.
  struct Same {
    int layer = 0, head = 0;
    int64_t queries = 0;
  };
  /// All other heads, by layer and head. REQUIRES: finished.
  std::vector<Same> of(int layer, int head) const;

 private:
  struct Layer {
    int heads = 0;
    std::vector<int32_t> chosen = {};
  };
  std::map<int, Layer> batch_;
  std::vector<std::pair<int, int>> heads_;  // layer and head of each
  std::vector<int64_t> same_;               // [heads, heads]
};

}  // namespace mh
