#include "multihead/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace mh::detail {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(
      stderr, "multihead: assertion failed: %s (%s:%d); this is a mistake in the program, please report it\n",
      condition, file, line);
  std::abort();
}

}  // namespace mh::detail
