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

PackedParameters::PackedParameters(std::vector<const Parameter*> parts, RightFactor factor)
    : parts_(std::move(parts)), factor_(factor) {
  MH_ASSERT(factor_ == RightFactor::kSideBySide || parts_.size() == 1);
}

uint64_t PackedParameters::versions() const {
  uint64_t sum = 0;
  for (const Parameter* part : parts_) sum += part->version;
  return sum;
}

/// The parts of B side by side, until they are packed.
struct PackedParameters::Borrowed {
  std::vector<BorrowedMatrix> keepers;
  std::vector<StoredMatrix> parts;
};

PackedParameters::Borrowed PackedParameters::borrow() const {
  Borrowed borrowed;
  for (const Parameter* part : parts_) {
    const BorrowedMatrix& kept = borrowed.keepers.emplace_back(part->value.borrow());
    borrowed.parts.push_back(factor_ == RightFactor::kTransposed ? kept.matrix.transposed() : kept.matrix);
  }
  return borrowed;
}

bool PackedParameters::pack_blocks(PackedMatrix& packed) const {
  std::vector<const BlockMatrix*> parts;
  for (const Parameter* part : parts_) {
    parts.push_back(part->value.blocks(/*columns=*/factor_ == RightFactor::kSideBySide));
    if (parts.back() == nullptr) return false;
  }
  packed.pack_transposed(parts, parts_.front()->precision, [&] {
    for (const Parameter* part : parts_) part->value.release_blocks();
  });
  return true;
}

const PackedMatrix& PackedParameters::packed() const {
  return packed_.get(versions(), [&](PackedMatrix& made) {
    if (!pack_blocks(made)) made.pack(borrow().parts, parts_.front()->precision);
  });
}

GradientFactor PackedParameters::gradient() const {
  const PackedMatrix& b = packed();
  if (b.is_exact() && b.kind() != PanelKind::kFloat32) return {.panels = b, .transposed = false};
  return {.panels =
              transposed_.get(versions(), [&](PackedMatrix& made) { made.pack_transposed(borrow().parts); }),
          .transposed = true};
}

}  // namespace mh
