// The words that may come next: what a causal model says behind the end of a text.
#pragma once

#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/nn/context.h"
#include "multihead/tasks/fill_words.h"

namespace mh::web {

struct FollowingOptions {
  int32_t words = 5;  // the most probable ones
  Sites* sites = nullptr;

  template <class V>
  void visit(V& v) {
    v("words", words, {.low = 1, .high = kMostWords});
  }
};

/// The tokens that may follow the text, most probable first, with a space where the token begins with one. Throws UsageError on a model
/// that is not causal, on more words than it has, and on a text that is longer than it reads.
std::vector<FilledWord> following_words(const ModelFolder& folder, const std::string& text,
                                        const FollowingOptions& options);

}  // namespace mh::web
