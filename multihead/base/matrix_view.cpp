#include "multihead/base/matrix_view.h"

#include <string>

namespace mh::detail {

void throw_outside(const char* what, int64_t begin, int64_t end, int64_t all) {
  throw ShapeError(std::string(what) + " [" + std::to_string(begin) + ", " + std::to_string(end) +
                   ") of a matrix that has " + std::to_string(all));
}

}  // namespace mh::detail
