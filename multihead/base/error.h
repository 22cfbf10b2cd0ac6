// Errors of input: a file, a setting, a shape. The message is one line that names the thing, what was
// expected and what was found, and the remedy. A setting that could be chosen otherwise is named by its
// field, between backticks: `d_key`; a program whose user knows it by another name can put that in its place.
// A mistake in the library itself throws too (MH_ASSERT): nothing here ends the process.
#pragma once

#include <stdexcept>
#include <string>

namespace mh {

/// Every exception of this library derives from this one.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file or folder that is missing, cannot be read or cannot be written.
class FileError : public Error {
 public:
  using Error::Error;
};

/// Contents that are not what they should be: broken UTF-8, JSON, a header that lies, a tokenizer of another
/// kind.
class FormatError : public Error {
 public:
  using Error::Error;
};

/// Shapes that do not fit together, e.g. "matmul: [2,3] x [4,5]".
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A setting that cannot be: out of range, or at odds with another one.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Work that was asked to stop (SIGTERM, Ctrl-C) and has saved what it had.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// A mistake in the library, not in what it was given: a condition that should always hold does not. What
/// was being computed is lost; report it with the message.
class InternalError : public Error {
 public:
  using Error::Error;
};

namespace detail {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}

}  // namespace mh

/// Throws InternalError unless `condition` holds: in every build, since none of these is in an inner loop.
#define MH_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::mh::detail::assertion_failed(#condition, __FILE__, __LINE__))
