#include "multihead/autograd/parameter.h"

namespace mh {

std::optional<PackedForm> packed_form(const Parameter& parameter, PrecisionChoice precision) {
  if (parameter.read_by == ReadBy::kNoProduct) return std::nullopt;
  const Weight& value = parameter.value;
  const bool transposed = parameter.read_by == ReadBy::kTransposedProduct,
             of_heads = parameter.read_by == ReadBy::kHeads;
  if (const BlockMatrix* const blocks = of_heads ? nullptr : value.blocks(/*columns=*/!transposed))
    return packed_form({&blocks, 1}, precision);
  StoredMatrix shape{.type = of_heads ? NumberType::kFloat32 : value.number_type(),
                     .rows = value.rows(),
                     .cols = value.cols()};
  if (transposed) shape = shape.transposed();
  return packed_form({&shape, 1}, of_heads ? Precision::kSame : precision);
}

uint64_t PackedParameters::versions() const {
  uint64_t sum = 0;
  for (const Parameter* part : parts_) sum += part->version;
  return sum;
}

void PackedParameters::pack(PackedMatrix& packed, bool transposed, ProductOf of) const {
  if (of == ProductOf::kValues && pack_blocks(packed, transposed)) return;
  std::vector<BorrowedMatrix> borrowed;  // until it is packed
  std::vector<StoredMatrix> stored;
  for (const Parameter* part : parts_) {
    borrowed.push_back(part->value.borrow());
    stored.push_back(borrowed.back().matrix);
  }
  if (of == ProductOf::kGradients) return transposed ? packed.pack_transposed(stored) : packed.pack(stored);
  MH_ASSERT(!transposed || stored.size() == 1);
  if (transposed) stored[0] = stored[0].transposed();
  packed.pack(stored, parts_.front()->precision);
}

bool PackedParameters::pack_blocks(PackedMatrix& packed, bool transposed) const {
  std::vector<const BlockMatrix*> parts;
  for (const Parameter* part : parts_) {
    parts.push_back(part->value.blocks(/*columns=*/!transposed));
    if (parts.back() == nullptr) return false;
  }
  packed.pack_transposed(parts, parts_.front()->precision, [&] {
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
