// What the fuzzers of files hold every reader to: a result, or an error of one line.
#pragma once

#include <cstdlib>
#include <string>

#include "multihead/base/error.h"

namespace mh {

/// Whether `read` ends without an error. Ends the program on an error of several lines, and on a mistake of ours.
template <class Read>
bool reads(Read&& read) {
  try {
    read();
    return true;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
    return false;
  }
}

}  // namespace mh
