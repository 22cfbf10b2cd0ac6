// The precision of a model's products with its weights (base/precision.h, docs/precision.md).
//
//   use_precision(*folder.model, mh::Precision::kFast);
#pragma once

#include "multihead/base/precision.h"

namespace mh {

class Model;

/// All products of rows with the model's weights are computed so from now on; gradients go through the weights' float32
/// numbers, whatever it is. The model is not to be trained afterwards unless it is kSame. Throws UsageError when this machine does
/// not have the kernel that is chosen, when that kernel does not serve the contract, and when it serves none of the model's products.
void use_precision(Model& model, PrecisionChoice precision);

}  // namespace mh
