#include "multihead/autograd/parameter.h"

namespace mh {

uint64_t PackedParameters::versions() const {
  uint64_t sum = 0;
  for (const Parameter* part : parts_) sum += part->version;
  return sum;
}

std::vector<ConstMatrixView> PackedParameters::views() const {
  std::vector<ConstMatrixView> views;
  for (const Parameter* part : parts_) views.push_back(part->value.view());
  return views;
}

const PackedMatrix& PackedParameters::packed() {
  if (const uint64_t now = versions(); plain_.versions != now) {
    plain_.matrix.pack(views());
    plain_.versions = now;
  }
  return plain_.matrix;
}

const PackedMatrix& PackedParameters::packed_transposed() {
  if (const uint64_t now = versions(); transposed_.versions != now) {
    transposed_.matrix.pack_transposed(views());
    transposed_.versions = now;
  }
  return transposed_.matrix;
}

}  // namespace mh
