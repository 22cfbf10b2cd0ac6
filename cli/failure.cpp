#include "cli/failure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/flag_names.h"
#include "cli/help_format.h"
#include "cli/stray_arguments.h"
#include "multihead/base/error.h"
#include "multihead/base/suggestions.h"

namespace mh::cli {
namespace {

constexpr int kRunTimeError = 1;
constexpr int kUsageError = 2;
constexpr int kSignalled = 128;  // plus the signal, as a shell reports it

int tell(const std::string& message, int status) {
  to_stderr(fmt::format("multihead: {}\n", error_line(message)));
  return status;
}

std::vector<std::string> flag_names_of(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::App* app = &verb; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

// What CLI11 found no place for: a flag that is not there, or else arguments.
bool looks_like_a_flag(const std::string& given) {
  return given.starts_with('-') && given != "-" && given != "--";
}

std::string no_flag(const CLI::App& verb, const std::string& given) {
  const std::string flag = given.substr(0, given.find('='));
  const std::string meant = flag.starts_with("--") ? did_you_mean(flag, flag_names_of(verb)) : "";
  return fmt::format("{} is no flag of {}; {}", flag, typed_name(verb),
                     meant.empty() ? fmt::format("see {} --help-all", typed_name(verb)) : meant);
}

/// What is wrong with the values of flags that were given; empty: nothing.
std::string wrong_values(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options([](const CLI::Option* o) { return o->count() > 0; })) {
    const std::string name = option->get_name();
    const int given = static_cast<int>(option->count()), least = option->get_items_expected_min(),
              most = option->get_items_expected_max();
    if (given > most && most == 1)
      return fmt::format("{} is given more than once: {}", name, fmt::join(option->results(), " and "));
    if (most > 0 && (given < least || given > most))
      return fmt::format("{}: expected {} values, got {}", name, given < least ? least : most, given);
    for (const CLI::Option* other : option->get_excludes()) {
      if (other->count() > 0)
        return fmt::format("{} and {} cannot be given together", name, other->get_name());
    }
  }
  return "";
}

std::string parse_mistake(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  const CLI::App& verb = chosen_verb(app);
  const auto arguments = verb.get_options([](const auto* option) { return option->get_positional(); });
  const bool wants_verb = !listed_names(verb).empty() && arguments.empty();
  std::vector<std::string> unknown = app.remaining(true);
  unknown.erase(std::remove(unknown.begin(), unknown.end(), "--"), unknown.end());
  // "--beamsize 3" is the mistake rather than what CLI11 finds because of it: that it misses a flag, or that the
  // model is given twice, since 3 took its place.
  const auto flag = std::find_if(unknown.begin(), unknown.end(), looks_like_a_flag);
  if (flag != unknown.end() && (flag == unknown.begin() || !wants_verb)) return no_flag(verb, *flag);
  if (std::string wrong = wrong_values(verb); !wrong.empty()) return wrong;
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (!missing && dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return what;
  if (wants_verb) return no_verb(verb, unknown.empty() ? "" : unknown.front());
  if (!unknown.empty()) {
    // "heads stat model": the verb was taken for the model.
    for (const CLI::Option* argument : arguments) {
      if (argument->count() > 0 && !did_you_mean(argument->results().front(), listed_names(verb)).empty())
        return no_verb(verb, argument->results().front());
    }
    return too_many_arguments(verb, unknown);
  }
  if (what == "--model is required" && verb.get_option("--model")->get_positional()) {
    return fmt::format("the model folder is missing; give it as {} DIR or --model DIR", typed_name(verb));
  }
  return fmt::format("{}; see {} --help", what, typed_name(verb));
}

bool has_flag(const CLI::App& verb, const char* flag) {
  return verb.get_option_no_throw(flag) != nullptr;
}

std::string out_of_memory(const CLI::App& verb) {
  for (const char* flag : {"--batch-tokens", "--max-batch-tokens"}) {
    if (has_flag(verb, flag))
      return fmt::format(
          "out of memory; try a smaller {}, shorter lines, less text at a time or a smaller model", flag);
  }
  return "out of memory; try less at a time";
}

}  // namespace

std::string no_verb(const CLI::App& app, const std::string& given) {
  const std::vector<std::string> verbs = listed_names(app);
  if (verbs.empty()) return fmt::format("{} has no verbs, but {} is given", typed_name(app), given);
  const std::string all = fmt::format("{} VERB is one of {}", typed_name(app), fmt::join(verbs, ", "));
  if (given.empty()) return "no verb is given; " + all;
  const std::string meant = did_you_mean(given, verbs);
  return fmt::format("{} is no verb; {}", given, meant.empty() ? all : meant);
}

int tell_failure(const CLI::App& app, const std::exception_ptr& failure) {
  const CLI::App& verb = chosen_verb(app);
  const auto in_flags = [&](const std::exception& error) { return with_flags(verb, error.what()); };
  try {
    std::rethrow_exception(failure);
  } catch (const AlreadyTold& told) {
    return told.status();
  } catch (const CLI::ParseError& error) {
    return tell(parse_mistake(app, error), kUsageError);
  } catch (const UsageError& error) {
    return tell(in_flags(error), kUsageError);
  } catch (const StoppedBySignal& stopped) {
    return tell(in_flags(stopped), kSignalled + stopped.signal());
  } catch (const Interrupted& stopped) {
    return tell(in_flags(stopped), kSignalled + SIGTERM);
  } catch (const StandardOutputError& error) {
    return tell(
        error.what() + std::string(has_flag(verb, "--output") ? "; give -o FILE to write elsewhere" : ""),
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
