// The whole command line: every verb, and what they share.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/flag_names.h"
#include "cli/help_text.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/thread_pool.h"

namespace mh::cli {
namespace {

struct Verbs {
  const char* title;
  std::initializer_list<void (*)(Verb&)> add;
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
void put_flags_in_help(const Verb& verb) {
  for (const auto& of_verb : verb.verbs()) put_flags_in_help(*of_verb);
  for (const auto& flag : verb.flags()) flag->description(with_flags(verb, flag->about));
}

}  // namespace

void add_all(Verb& tool) {
  tool.footer(MULTIHEAD_LAB != 0 ? "Example:\n  multihead data grammar --out corpus"
                                 : "Example:\n  multihead heads model --text 'two dogs run .'");
  tool.add_flag("-h,--help", "This help");
  tool.add_flag("--help-all", "Help with every flag");
  tool.add_flag("--version", "The version, and which kernels run on this machine");
  const auto threads = std::make_shared<int>(0);
  add_number(tool, "--threads", *threads, {.low = 0, .high = kMostThreads},
             "Threads to use; 0: one for each processor")
      ->default_str("");
  tool.add_flag("--quiet", "No progress and no remarks on standard error")->each([](const std::string&) {
    set_quiet(true);
  });
  for (const auto& flag : tool.flags()) flag->group(kEveryVerb);
  tool.callback([threads] { use_threads(*threads); });

  const Verbs all[] = {{"Data and training", {add_data, add_tokenize, add_train}},
                       {"Translation", {add_translate, add_score, add_bleu}},
                       {"Models that others trained", {add_embed, add_generate, add_fill, add_classify}},
                       {"Looking inside and changing heads",
                        {add_info, add_heads, add_view, add_trace, add_ledger, add_convert, add_check}},
                       {"Everything at once", {add_demo, add_study}},
                       {"The command line", {add_completion}},
                       {"", {add_help, add_version, add_pages}}};  // these are not listed
  for (const Verbs& verbs : all) {
    for (const auto add : verbs.add) {
      if (add == nullptr) continue;
      add(tool);
      tool.verbs().back()->group(verbs.title);
    }
  }
  put_flags_in_help(tool);
}

}  // namespace mh::cli
