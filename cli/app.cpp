#include "cli/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/flag_names.h"
#include "cli/given_values.h"
#include "cli/help_format.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/simd.h"

namespace mh::cli {
namespace {

struct Verbs {
  const char* title;
  std::initializer_list<void (*)(CLI::App&)> add;
};

// More threads than processors gain nothing; beyond this many for each they mostly wait for one another.
constexpr int kThreadsAProcessor = 4;

void use_threads(int asked) {
  if (asked == 0) return;
  const int processors = thread_count(), most = kThreadsAProcessor * processors;
  if (asked > most) {
    remark(fmt::format("--threads {}: this machine has {}; {} are used, with the same results", asked,
                       counted(processors, "processor"), most));
  }
  set_thread_count(std::min(asked, most));
}

// Help names settings as the library does (`d_key`); here they are flags.
void put_flags_in_help(CLI::App& app) {
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    put_flags_in_help(*verb);
    for (CLI::Option* option : verb->get_options()) {
      const std::string& about = option->get_description();
      if (about.find('`') != std::string::npos) option->description(with_flags(*verb, about));
    }
  }
}

}  // namespace

void add_all(CLI::App& app) {
  app.name("multihead");
  app.description("multihead trains, runs and looks inside the heads of Transformers on the CPU.");
  use_help_format(app);
  app.footer(MULTIHEAD_LAB != 0 ? "Example:\n  multihead data grammar --out corpus"
                                : "Example:\n  multihead heads model --text 'two dogs run .'");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag(
         "--version",
         [] { return std::string("multihead " MULTIHEAD_VERSION " (kernels: ") + dispatch_target() + ")"; },
         "The version, and which kernels run on this machine")
      ->group(kEveryVerb);
  const auto threads = std::make_shared<int>(0);
  add_number(app, "--threads", *threads, {.low = 0, .high = kMostThreads},
             "Threads to use; 0: one for each processor")
      ->default_str("")
      ->group(kEveryVerb);
  app.add_flag_callback(
         "--quiet", [] { set_quiet(true); }, "No progress and no remarks on standard error")
      ->group(kEveryVerb);
  app.parse_complete_callback([threads] { use_threads(*threads); });

  const Verbs all[] = {{"Data and training", {add_data, add_tokenize, add_train}},
                       {"Translation", {add_translate, add_score, add_bleu}},
                       {"Models that others trained", {add_embed, add_generate, add_fill}},
                       {"Looking inside and changing heads",
                        {add_info, add_heads, add_view, add_trace, add_ledger, add_convert}},
                       {"Everything at once", {add_demo, add_study}},
                       {"The command line", {add_completion}},
                       {"", {add_help, add_version, add_pages}}};  // these are not listed
  for (const Verbs& verbs : all) {
    for (const auto add : verbs.add) {
      if (add == nullptr) continue;
      add(app);
      app.get_subcommands([](CLI::App*) { return true; }).back()->group(verbs.title);
    }
  }
  put_flags_in_help(app);
  refuse_empty_texts(app);
}

}  // namespace mh::cli
