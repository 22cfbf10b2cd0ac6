// What ends the tool when something cannot be: one line on standard error and an exit status.
#pragma once

#include <exception>

namespace mh::cli {

class Verb;

/// What went wrong was told, here or by another one of several processes: end with this status and no word.
class AlreadyTold : public std::exception {
 public:
  explicit AlreadyTold(int status) : status_(status) {}
  const char* what() const noexcept override { return "told already"; }
  int status() const { return status_; }

 private:
  int status_;
};

/// Says in one line what went wrong. Returns the exit status: 2 for invalid flags, 1 for what could
/// not be done, 128 and the signal's number when the work was asked to stop.
int tell_failure(const Verb& tool, const std::exception_ptr& failure);

}  // namespace mh::cli
