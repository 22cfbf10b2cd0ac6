#include "tests/support/places.h"

namespace mh {

std::string source_folder() {
  return MULTIHEAD_SOURCE;
}
std::string goldens_folder() {
  return source_folder() + "/tests/goldens";
}
std::string build_folder() {
  return MULTIHEAD_BUILD;
}
std::string tool_file() {
  return MULTIHEAD_TOOL;
}

}  // namespace mh
