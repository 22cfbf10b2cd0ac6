#include "cli/failure.h"

#include <fmt/format.h>

#include <csignal>
#include <new>
#include <stdexcept>
#include <string>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/flag_names.h"
#include "cli/verb.h"
#include "multihead/base/error.h"

namespace mh::cli {
namespace {

constexpr int kRunTimeError = 1;
constexpr int kUsageError = 2;
constexpr int kSignalled = 128;  // plus the signal, as a shell reports it

int tell(const std::string& message, int status) {
  to_stderr(fmt::format("multihead: {}\n", error_line(message)));
  return status;
}

std::string out_of_memory(const Verb& verb) {
  for (const char* flag : {"--batch-tokens", "--max-batch-tokens"}) {
    if (verb.find(flag) != nullptr)
      return fmt::format(
          "out of memory; try a smaller {}, shorter lines, less text at a time or a smaller model", flag);
  }
  return "out of memory; try less at a time";
}

}  // namespace

int tell_failure(const Verb& tool, const std::exception_ptr& failure) {
  const Verb& verb = tool.chosen();
  const auto in_flags = [&](const std::exception& error) { return with_flags(verb, error.what()); };
  try {
    std::rethrow_exception(failure);
  } catch (const AlreadyTold& told) {
    return told.status();
  } catch (const UsageError& error) {
    return tell(in_flags(error), kUsageError);
  } catch (const StoppedBySignal& stopped) {
    return tell(in_flags(stopped), kSignalled + stopped.signal());
  } catch (const Interrupted& stopped) {
    return tell(in_flags(stopped), kSignalled + SIGTERM);
  } catch (const StandardOutputError& error) {
    return tell(error.what() +
                    std::string(verb.find("--output") != nullptr ? "; give -o FILE to write elsewhere" : ""),
                kRunTimeError);
  } catch (const std::bad_alloc&) {
    return tell(out_of_memory(verb), kRunTimeError);
  } catch (const std::length_error&) {  // more than any memory holds
    return tell(out_of_memory(verb), kRunTimeError);
  } catch (const std::exception& error) {  // ours, and those of std::filesystem and other libraries
    return tell(in_flags(error), kRunTimeError);
  }
}

}  // namespace mh::cli
