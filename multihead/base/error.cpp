#include "multihead/base/error.h"

#include <string>

namespace mh {
namespace {

std::string without_nul(const std::string& what) {
  std::string message;
  for (const char c : what) message += c == '\0' ? "\\u0000" : std::string(1, c);
  return message;
}

}  // namespace

Error::Error(const std::string& what) : std::runtime_error(without_nul(what)) {}

namespace detail {

void assertion_failed(const char* condition, const char* file, int line) {
  throw InternalError(std::string("internal error: ") + condition + " does not hold (" + file + ":" +
                      std::to_string(line) + "); this is a mistake in multihead, please report it");
}

}  // namespace detail
}  // namespace mh
