#include "multihead/generate/check_sequences.h"

#include <fmt/format.h>

#include "multihead/base/error.h"

namespace mh {

void check_sequences(std::span<const std::vector<int32_t>> sequences, std::string_view what,
                     int32_t max_positions, int32_t vocabulary) {
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].size() > static_cast<size_t>(max_positions)) {
      throw ShapeError(fmt::format("{} {}: {} tokens, but the model reads at most {}; cut it", what, i + 1,
                                   sequences[i].size(), max_positions));
    }
    for (const int32_t id : sequences[i]) {
      if (id < 0 || id >= vocabulary) {
        throw UsageError(fmt::format("{} {}: expected token ids from 0 to {}, got {}; is it the right model?",
                                     what, i + 1, vocabulary - 1, id));
      }
    }
  }
}

}  // namespace mh
