#include "multihead/base/error.h"

#include <string>

namespace mh::detail {

void assertion_failed(const char* condition, const char* file, int line) {
  throw InternalError(std::string("internal error: ") + condition + " does not hold (" + file + ":" +
                      std::to_string(line) + "); this is a mistake in multihead, please report it");
}

}  // namespace mh::detail
