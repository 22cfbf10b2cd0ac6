// multihead heads contributions: what each part of a model adds to one logit, a difference of two, or a cosine.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "cli/head_changes.h"
#include "cli/heads/contributions_report.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "multihead/base/error.h"
#include "multihead/heads/contributions/heads_contributions.h"
#include "multihead/heads/reports/contributions_json.h"
#include "multihead/io/cut_at.h"
#include "multihead/io/lines.h"

namespace mh::cli {
namespace {

struct ContributionFlags {
  ReportFlags<ContributionOptions> report = {};
  AnswerQuestion question = {};
  std::string input = {};
  HeadChangeFlags changes = {};
  int64_t strongest = 10;
  int token = 0;
};

/// "TEXT", "TEXT<tab>ANSWER" or "TEXT<tab>ANSWER<tab>WRONG" of each line, with what the flags say of all.
std::vector<AnswerQuestion> questions_of(const std::string& file, const AnswerQuestion& all) {
  std::vector<AnswerQuestion> questions;
  for (const std::string& line : read_lines(file, text_limits())) {
    AnswerQuestion one = all;
    const std::vector<std::string_view> columns = cut_at(line, '\t');
    if (columns.size() > 3)
      throw FormatError(
          fmt::format("{}:{}: {} columns; expected a text, then perhaps an answer and a wrong one, "
                      "between tabs",
                      file, questions.size() + 1, columns.size()));
    one.text = columns[0];
    if (columns.size() > 1) one.answer = columns[1];
    if (columns.size() > 2) one.wrong = columns[2];
    questions.push_back(std::move(one));
  }
  return questions;
}

template <class Questions>
auto contributions_of(const ScoredModel& model, const Questions& questions,
                      const ContributionOptions& options) {
  return model.folder().gives_vectors_alone() ? heads_contributions(model.sentences(), questions, options)
                                              : heads_contributions(model.folder(), questions, options);
}

void run_contributions(const ContributionFlags& flags, const Verb& verb) {
  const AnswerQuestion& asked = flags.question;
  const bool several = !flags.input.empty();
  if (several == (verb.get_option("--text")->count() > 0))
    throw UsageError("give --text, or -i with a text on each line");
  for (const char* flag : {"--answer", "--wrong"}) {
    if (several && verb.get_option(flag)->count() > 0)
      throw UsageError(
          fmt::format("{} belongs to --text; in the file an answer stands behind each text", flag));
  }
  for (const auto& [text, flag] : {std::pair(&asked.text, "--text"), std::pair(&asked.answer, "--answer"),
                                   std::pair(&asked.wrong, "--wrong"), std::pair(&asked.prefix, "--prefix")})
    check_utf8(*text, flag);
  ContributionOptions options = flags.report.settings.given();
  ChangedHeads changed = changed_heads(flags.changes);
  options.sites = changed.sites();
  options.remark = [](const std::string& line) { remark(line); };
  AnswerQuestion question = asked;
  if (verb.get_option("--token")->count() > 0) question.position = flags.token;
  const auto tables = [&](const auto& found) { return contributions_tables(found, flags.strongest); };
  const auto json = [](const auto& found, const std::string& name) {
    return contributions_json(found, name);
  };
  if (!several) {
    const ScoredModel model = load_scored(flags.report.model_to_run());
    changed.check(model.folder());
    return flags.report.write(contributions_of(model, question, options), options, json, tables);
  }
  const std::vector<AnswerQuestion> questions = questions_of(flags.input, question);
  Progress progress("read", "texts");
  progress.expect(std::ssize(questions));
  options.progress = [&](int64_t done) { progress.show(done); };
  options.sources = 0;
  const ScoredModel model = load_scored(flags.report.model_to_run());
  changed.check(model.folder());
  const MeanContributions found =
      contributions_of(model, std::span<const AnswerQuestion>(questions), options);
  progress.clear();
  flags.report.write(found, options, json, tables);
}

}  // namespace

void add_heads_contributions(Verb& heads) {
  auto flags = std::make_shared<ContributionFlags>();
  Verb* verb = heads.add_subcommand(
      "contributions", "What each head and layer adds to a logit, or to a cosine: parts that sum to it");
  flags->report.add(*verb, "Write JSON, all parts with their positions, instead of tables");
  verb->add_option("--text", flags->question.text,
                   "Text that the model reads; for masked words with one mask");
  verb->add_option(
      "--answer", flags->question.answer,
      "Word whose logit is explained, or label; without: the model's own. For sentence vectors the "
      "text with which the cosine is explained");
  verb->add_option("--wrong", flags->question.wrong,
                   "Word, label or text whose logit or cosine is subtracted");
  verb->add_option("--prefix", flags->question.prefix,
                   "Beginning of a translator's target, after which the answer comes");
  add_number(*verb, "--token", flags->token, {.low = 0},
             "Of a classifier of tokens: the token whose label is explained, counted from 0")
      ->default_str("");
  verb->add_option(
      "-i,--input", flags->input,
      "Texts, one a line, each perhaps with its answer and a wrong one behind tabs: means over them");
  add_number(*verb, "--strongest", flags->strongest, {.low = 0, .high = 1000000},
             "How many of the strongest parts are listed");
  add_limit_flags(*verb);
  add_head_change_flags(*verb, flags->changes);
  name_values(*verb, "FILE", {"--input"});
  rare_flags(*verb, {"--strongest"});
  verb->footer(
      "Example:\n"
      "  multihead heads contributions smollm2.gguf --text 'The capital of France is' \\\n"
      "    --answer Paris --wrong Rome\n"
      "  multihead heads contributions demo --text 'two dogs run .' --prefix 'zwei'\n"
      "  multihead heads contributions bert --text 'Paris is the capital of [MASK].' \\\n"
      "    --answer france\n"
      "  multihead heads contributions distilbert-sst2 --text 'A lovely film.' \\\n"
      "    --answer POSITIVE --wrong NEGATIVE\n"
      "  multihead heads contributions minilm --text 'two dogs run .' \\\n"
      "    --answer 'a pair of dogs is running .'\n"
      "  multihead heads contributions smollm2.gguf -i questions.tsv");
  verb->callback([flags, verb] { run_contributions(*flags, *verb); });
}

}  // namespace mh::cli
