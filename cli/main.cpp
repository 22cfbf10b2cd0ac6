// multihead VERB ...: parses, calls the verb, turns errors into one line and an exit status.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/flag_names.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/simd.h"

namespace {

constexpr int kRunTimeError = 1;
constexpr int kUsageError = 2;
constexpr int kSignalled = 128;  // plus the signal, as a shell reports it

// A standard stream that is closed would be the next file we open, and what is printed would end up in there.
// Opened the wrong way round, it makes reading or writing it the error that it is.
void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      static_cast<void>(::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
    }
  }
}

void tell_common_flags(CLI::App& app) {
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    tell_common_flags(*verb);
    for (CLI::Option* option : verb->get_options(
             [](CLI::Option* each) { return each->get_description().find('`') != std::string::npos; })) {
      option->description(mh::cli::with_flags(*verb, option->get_description()));
    }
    verb->footer(
        verb->get_footer() +
        "\nEvery verb also takes --threads N (0: one for each processor) and --quiet (no progress, no "
        "remarks).");
  }
}

// "--beam-siez" is the mistake rather than what CLI11 misses because of it.
std::string describe(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string what = error.what();  // "--model: At Most 1 required but received 2"
    if (const size_t at = what.find(": At Most 1 "); at != std::string::npos) {
      return what.substr(0, at) + " is given more than once";
    }
  }
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (missing && std::string_view(error.what()) == "--model is required") {
    const CLI::App& verb = mh::cli::chosen_verb(app);
    if (verb.get_option("--model")->get_positional()) {
      return fmt::format("the model folder is missing; give it as multihead {} DIR or --model DIR",
                         verb.get_name());
    }
  }
  if (!missing && dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return error.what();
  const CLI::App* verb = &app;
  std::string name = "multihead";
  while (!verb->get_subcommands().empty()) {
    verb = verb->get_subcommands().front();
    name += " " + verb->get_name();
  }
  std::vector<std::string> verbs;
  for (const CLI::App* other : verb->get_subcommands([](const CLI::App*) { return true; })) {
    if (!other->get_group().empty()) verbs.push_back(other->get_name());
  }
  const std::vector<std::string> unknown = app.remaining(true);
  if (!verbs.empty()) {
    return fmt::format("{}; {} VERB is one of {}",
                       unknown.empty() ? "no verb is given" : unknown.front() + " is no verb", name,
                       fmt::join(verbs, ", "));
  }
  return unknown.empty() ? fmt::format("{}; see {} --help", error.what(), name)
                         : fmt::format("{} is not known here; see {} --help", unknown.front(), name);
}

int fail(const std::string& message, int status) {
  mh::cli::to_stderr(fmt::format("multihead: {}\n", message));
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  CLI::App app("multihead trains, runs and looks inside the heads of Transformers on the CPU.", "multihead");
  app.footer(
      "Example:\n  multihead data grammar --out corpus\n  multihead VERB --help shows a verb's flags and an "
      "example.");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", [] {
    return std::string("multihead " MULTIHEAD_VERSION " (kernels: ") + mh::dispatch_target() + ")";
  });
  int threads = 0;
  mh::cli::add_number(app, "--threads", threads, {.low = 0, .high = 1024},
                      "Threads to use; 0: one for each processor");
  app.add_flag_callback(
      "--quiet", [] { mh::cli::set_quiet(true); }, "No progress and no remarks on standard error");
  app.parse_complete_callback([&threads] {
    if (threads > 0) mh::set_thread_count(threads);
  });
  mh::cli::add_bleu(app);
  mh::cli::add_convert(app);
  mh::cli::add_data(app);
  mh::cli::add_demo(app);
  mh::cli::add_heads(app);
  mh::cli::add_info(app);
  mh::cli::add_ledger(app);
  mh::cli::add_pages(app);
  mh::cli::add_score(app);
  mh::cli::add_study(app);
  mh::cli::add_tokenize(app);
  mh::cli::add_trace(app);
  mh::cli::add_train(app);
  mh::cli::add_translate(app);
  tell_common_flags(app);

  const auto in_flags = [&app](const std::exception& error) {
    return mh::cli::with_flags(mh::cli::chosen_verb(app), error.what());
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    app.exit(success);
    std::cout.flush();
    return std::cout ? 0 : fail("cannot write to standard output", kRunTimeError);
  } catch (const CLI::ParseError& error) {
    return fail(describe(app, error), kUsageError);
  } catch (const mh::UsageError& error) {
    return fail(in_flags(error), kUsageError);
  } catch (const mh::cli::StoppedBySignal& stopped) {
    return fail(in_flags(stopped), kSignalled + stopped.signal());
  } catch (const mh::Interrupted& stopped) {
    return fail(in_flags(stopped), kSignalled + SIGTERM);
  } catch (const std::bad_alloc&) {
    return fail("out of memory; use smaller batches or a smaller model", kRunTimeError);
  } catch (const std::exception& error) {  // ours, and those of std::filesystem and other libraries
    return fail(in_flags(error), kRunTimeError);
  }
  return 0;
}
