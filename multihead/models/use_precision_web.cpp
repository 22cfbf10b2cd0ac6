#include "multihead/models/use_precision.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/kernels/product_kernels.h"

namespace mh {

// The products of integers that near and fast need are as much code as all other products together, and a page loads it.
void use_precision(Model&, PrecisionChoice precision) {
  if (precision.contract == Precision::kSame) return;
  throw UsageError(
      fmt::format("`precision`: a module for pages computes in float32 alone, not {0}; take same, or "
                  "`multihead` itself with --precision {0}",
                  precision_name(precision)));
}

}  // namespace mh
