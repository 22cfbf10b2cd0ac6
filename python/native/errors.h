// An exception of Python that the library itself does not have.
#pragma once

#include "multihead/base/error.h"

namespace mh::python {

/// An argument of another type: multihead.ArgumentTypeError.
class ArgumentTypeError : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace mh::python
