#include "multihead/autograd/parameter.h"

namespace mh {

uint64_t PackedParameters::versions() const {
  uint64_t sum = 0;
  for (const Parameter* part : parts_) sum += part->version;
  return sum;
}

Precision PackedParameters::precision(ProductOf of) const {
  return of == ProductOf::kGradients ? Precision::kSame : parts_.front()->precision;
}

void PackedParameters::pack(PackedMatrix& packed, bool transposed, ProductOf of) const {
  if (pack_blocks(packed, transposed, of)) return;
  std::vector<BorrowedMatrix> borrowed;  // until it is packed
  std::vector<StoredMatrix> stored;
  for (const Parameter* part : parts_) {
    borrowed.push_back(part->value.borrow());
    stored.push_back(borrowed.back().matrix);
  }
  transposed ? packed.pack_transposed(stored) : packed.pack(stored);
}

bool PackedParameters::pack_blocks(PackedMatrix& packed, bool transposed, ProductOf of) const {
  std::vector<const BlockMatrix*> parts;
  for (const Parameter* part : parts_) {
    parts.push_back(part->value.blocks(/*columns=*/!transposed));
    if (parts.back() == nullptr) return false;
  }
  packed.pack_transposed(parts, precision(of), [&] {
    for (const Parameter* part : parts_) part->value.release_blocks();
  });
  return true;
}

const PackedMatrix& PackedParameters::packed(ProductOf of) const {
  return plain_.get(versions(), [&](PackedMatrix& made) { pack(made, false, of); });
}

const PackedMatrix& PackedParameters::packed_transposed(ProductOf of) const {
  return transposed_.get(versions(), [&](PackedMatrix& made) { pack(made, true, of); });
}

}  // namespace mh
