#include "multihead/nn/context.h"

namespace mh {

Dropout dropout_at(const Context& context, float rate, uint32_t stream, const Sequences& rows) {
  if (!context.dropout || rate <= 0) return {};
  return {.rate = rate,
          .stream = dropout_stream(context.dropout->seed, context.dropout->update, stream),
          .offsets = rows.ragged->offsets(),
          .sentences = rows.sentences};
}

}  // namespace mh
