// multihead heads compare: what a training changed in the heads of a model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/corpus_flags.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/load_model.h"
#include "cli/verb.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/measures/heads_compare.h"
#include "multihead/heads/reports/compare_json.h"

namespace mh::cli {
namespace {

struct CompareFlags {
  ReportFlags<CompareOptions> report = {};
  CorpusFlags corpus = {};
  std::string after = {};
};

constexpr size_t kMostNamed = 5;

std::string percent(const std::optional<double>& change) {
  return change ? fmt::format("{:.1f} %", 100 * *change) : "-";
}

std::string line_of(const ChangedHead& head) {
  const std::string half =
      std::isfinite(head.divergence.half) ? fmt::format("{:.4f}", head.divergence.half) : "-";
  return fmt::format("{:>4}{:>7.2f}{:>7.2f}{:>9.4f} ± {:<7}{:>7.3f}{:>7}{:>10}{:>10}\n", head.head,
                     head.entropy_before, head.entropy_after, head.divergence.mean, half,
                     head.null_divergence.mean, head.ratio ? fmt::format("{:.2f}", head.ratio->mean) : "-",
                     percent(head.qk_change), percent(head.ov_change));
}

/// "Most changed: encoder.0.self_attention.3 (JSD 0.104), ...".
std::string most_changed(const std::vector<ChangedHead>& heads) {
  std::vector<const ChangedHead*> order;
  for (const ChangedHead& head : heads) order.push_back(&head);
  std::stable_sort(order.begin(), order.end(), [](const ChangedHead* a, const ChangedHead* b) {
    return a->divergence.mean > b->divergence.mean;
  });
  order.resize(std::min(order.size(), kMostNamed));
  std::string names;
  for (const ChangedHead* head : order)
    names += fmt::format("{}{} (JSD {:.4f})", names.empty() ? "" : ", ", head->name(), head->divergence.mean);
  return wrapped("Most changed: " + names + ".");
}

std::string compare_table(const CompareReport& report) {
  std::string text = what_was_read(report.read) + "after: " + report.after + "\n", attention;
  for (const ChangedHead& head : report.heads) {
    if (head.attention != attention) {
      attention = head.attention;
      text += fmt::format("\n{}\nhead   nats  after      JSD            null  ratio      W_QK      W_OV\n",
                          attention);
    }
    text += line_of(head);
  }
  return text + "\n" + most_changed(report.heads) + "\n" +
         wrapped(
             "nats, after: mean entropy of a query's weights in both models; JSD: Jensen-Shannon divergence "
             "of the "
             "weights of a query before and after, in nats, 0 to 0.69, with its 95 % interval over "
             "sentences; null: "
             "when the weights of both are permuted at random; ratio: JSD over null, near 0 where the head "
             "reads as "
             "before and 1 where it reads as another head would by chance; W_QK, W_OV: how much the head's "
             "matrices "
             "changed, as a share of their size. docs/heads/compare.md says more.");
}

}  // namespace

void add_heads_compare(Verb& heads) {
  auto flags = std::make_shared<CompareFlags>();
  Verb* verb = heads.add_subcommand(
      "compare", "What a training changed in each head: what it reads, and its weights, before and after");
  flags->report.add(*verb);
  verb->add_option("--with", flags->after, "The model after: a folder that was trained from MODEL")
      ->type_name("MODEL")
      ->required();
  add_corpus_flags(*verb, flags->corpus, {.pairs = true});
  verb->footer(
      "Example:\n"
      "  multihead heads compare t5 --with fine-tuned -i test.en --target test.de\n"
      "  multihead heads compare t5 --with fine-tuned -i test.en --json");
  verb->callback([flags] {
    CompareOptions options = flags->report.settings.given();
    ModelFlags after = flags->report.model_to_run();
    CorpusRun run(load_model(after), flags->corpus);
    run.attach(options.observe);
    after.path = flags->after;
    const ModelFolder changed = load_model(after);
    flags->report.write(heads_compare(run.folder(), changed, run.corpus(), options), options, compare_json,
                        compare_table);
  });
}

}  // namespace mh::cli
