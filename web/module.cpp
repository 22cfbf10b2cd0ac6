// The module that JavaScript loads: mh_call() takes a request and returns its answer, both JSON in UTF-8 (calls/calls.h). Files of
// models come in through the file system in memory that emscripten gives the module.
#include <cstddef>
#include <string>
#include <string_view>

#include "web/calls/calls.h"

namespace {

std::string answer;  // of the last request

}  // namespace

extern "C" {

/// Returns the answer's bytes; they stay until the next call.
const char* mh_call(const char* request, size_t bytes) {
  static mh::web::Models models;
  answer = models.call(std::string_view(request, bytes));
  return answer.data();
}
size_t mh_answer_bytes() {
  return answer.size();
}
}
