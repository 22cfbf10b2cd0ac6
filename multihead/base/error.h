// The exceptions of the library. Most are about input: a file, a setting, a shape.
//
// A message is one line: what is wrong with which thing, what was expected and found, and the remedy. It
// names a setting by its field between backticks, `d_key`; the command-line tool writes its own name,
// --d-key, in that place. A mistake in the library itself throws, too (MH_ASSERT): nothing here ends the
// process.
#pragma once

#include <stdexcept>
#include <string>

namespace mh {

/// Every exception of this library derives from this one.
class Error : public std::runtime_error {
 public:
  /// A NUL, which would end the message for what(), becomes \u0000.
  explicit Error(const std::string& what);
};

/// A file or folder that is missing, cannot be read or cannot be written.
class FileError : public Error {
 public:
  /// code: an errno, such as ENOENT of what is missing; 0: none says it.
  explicit FileError(const std::string& what, int code = 0) : Error(what), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

/// A file with wrong contents: broken UTF-8 or JSON, a header that contradicts the data, a tokenizer of a
/// kind that is not supported.
class FormatError : public Error {
 public:
  using Error::Error;
};

/// Shapes that do not fit together, e.g. "matmul: [2,3] x [4,5]".
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A setting that is out of range or contradicts another setting.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Thrown by work that was asked to stop (SIGTERM, Ctrl-C), after it has saved its state, or so that nothing
/// unfinished is left.
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

/// Throws InternalError unless `condition` holds. Checked in every build: none of these is in an inner loop.
#define MH_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::mh::detail::assertion_failed(#condition, __FILE__, __LINE__))
