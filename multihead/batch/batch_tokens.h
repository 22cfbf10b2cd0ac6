// How large a batch may be: a setting that the options of many functions have.
#pragma once

#include <cstdint>

namespace mh {

/// Describes `max_batch_tokens` (io/config.h).
template <class V>
void visit_batch_tokens(V& v, int64_t& max_batch_tokens) {
  v("max_batch_tokens", max_batch_tokens, {.low = 1},
    {.help = "Most source and target tokens in a batch", .rare = true});
}

}  // namespace mh
