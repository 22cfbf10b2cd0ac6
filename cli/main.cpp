// multihead VERB ...: parses, calls the verb, turns errors into one line and an exit status.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/common.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/simd.h"

namespace {

constexpr int kRunTimeError = 1;
constexpr int kUsageError = 2;
constexpr int kTerminated = 143;  // 128 + SIGTERM, as a shell reports it

}  // namespace

int main(int argc, char** argv) {
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
  app.add_option("--threads", threads, "Threads to use; 0: one for each processor")
      ->check(CLI::Range(0, 1024));
  app.add_flag_callback(
      "--quiet", [] { mh::cli::set_quiet(true); }, "No progress and no remarks on standard error");
  app.parse_complete_callback([&threads] {
    if (threads > 0) mh::set_thread_count(threads);
  });
  mh::cli::add_bleu(app);
  mh::cli::add_data(app);
  mh::cli::add_demo(app);
  mh::cli::add_heads(app);
  mh::cli::add_info(app);
  mh::cli::add_score(app);
  mh::cli::add_tokenize(app);
  mh::cli::add_train(app);
  mh::cli::add_translate(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "multihead: %s\n", error.what());
    return kUsageError;
  } catch (const mh::UsageError& error) {
    std::fprintf(stderr, "multihead: %s\n", error.what());
    return kUsageError;
  } catch (const mh::Interrupted& error) {
    std::fprintf(stderr, "multihead: %s\n", error.what());
    return kTerminated;
  } catch (const mh::Error& error) {
    std::fprintf(stderr, "multihead: %s\n", error.what());
    return kRunTimeError;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "multihead: out of memory; use smaller batches or a smaller model\n");
    return kRunTimeError;
  }
  return 0;
}
