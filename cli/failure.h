// What ends the tool when something cannot be: one line on standard error and an exit status.
#pragma once

#include <exception>
#include <string>

namespace CLI {
class App;
}

namespace mh::cli {

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
int tell_failure(const CLI::App& app, const std::exception_ptr& failure);

/// "translte is no verb; did you mean translate?", of `app`'s verbs; `given` is empty when there was none.
std::string no_verb(const CLI::App& app, const std::string& given);

}  // namespace mh::cli
