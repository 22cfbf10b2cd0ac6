#include "multihead/autograd/parameter.h"

namespace mh {

uint64_t PackedParameters::versions() const {
  uint64_t sum = 0;
  for (const Parameter* part : parts_) sum += part->version;
  return sum;
}

void PackedParameters::pack(PackedMatrix& packed, bool transposed) const {
  std::vector<BorrowedMatrix> borrowed;  // until it is packed
  std::vector<StoredMatrix> stored;
  for (const Parameter* part : parts_) {
    borrowed.push_back(part->value.borrow());
    stored.push_back(borrowed.back().matrix);
  }
  transposed ? packed.pack_transposed(stored) : packed.pack(stored);
}

const PackedMatrix& PackedParameters::packed() const {
  return plain_.get(versions(), [&](PackedMatrix& made) { pack(made, false); });
}

const PackedMatrix& PackedParameters::packed_transposed() const {
  return transposed_.get(versions(), [&](PackedMatrix& made) { pack(made, true); });
}

}  // namespace mh
