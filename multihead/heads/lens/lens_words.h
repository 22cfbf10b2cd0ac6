// What the streams of a text say in words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "multihead/heads/lens/heads_lens.h"
#include "multihead/heads/lens/logit_rows.h"
#include "multihead/heads/lens/stream_ends.h"
#include "multihead/heads/sites/observe_text.h"

namespace mh {

struct LensQuestion {
  std::span<const int32_t> positions = {};  // that are read, of what the model's last stack reads
  std::optional<int32_t> answer = {};
  int32_t words = 1;
  NameOfWord name = nullptr;
  Sites* sites = nullptr;
};

/// Sets readings of each place at each of found.positions, and what these predict in the end. seen: a pass that kept the sites of `ends`.
void lens_words(const Model& model, const Observation& seen, const StreamEnds& ends,
                const LensQuestion& question, LensReport& found);

}  // namespace mh
