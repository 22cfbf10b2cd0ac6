#include "multihead/autograd/parameter.h"

namespace mh {

uint64_t PackedParameters::versions() const {
  uint64_t sum = 0;
  for (const Parameter* part : parts_) sum += part->version;
  return sum;
}

std::vector<StoredMatrix> PackedParameters::stored() const {
  std::vector<StoredMatrix> stored;
  for (const Parameter* part : parts_) stored.push_back(part->value.stored());
  return stored;
}

const PackedMatrix& PackedParameters::packed() const {
  return plain_.get(versions(), [&](PackedMatrix& made) { made.pack(stored()); });
}

const PackedMatrix& PackedParameters::packed_transposed() const {
  return transposed_.get(versions(), [&](PackedMatrix& made) { made.pack_transposed(stored()); });
}

}  // namespace mh
