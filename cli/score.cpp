// multihead score: how probable given translations are, or how well a causal model predicts a text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>

#include "cli/common.h"
#include "cli/head_changes.h"
#include "cli/load_model.h"
#include "cli/model_text.h"
#include "cli/progress.h"
#include "cli/setting_flags.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/evaluate/perplexity.h"
#include "multihead/evaluate/score.h"
#include "multihead/evaluate/score_settings.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"

namespace mh::cli {
namespace {

struct ScoreFlags {
  ModelFlags model;
  std::string source, target;
  TextFlags text;
  ScoreOptions options;
  FlaggedSettings<ScoreSettings> settings;
  bool per_token = false, per_line = false, document = false, token_ids = false, strict = false;
  HeadChangeFlags changes;
};

std::string with_tokens(double sum, const std::vector<float>& tokens) {
  std::string line = fmt::format("{:.6f}", sum);
  for (const float token : tokens) line += fmt::format(" {:.6f}", token);
  return line + "\n";
}

double sum_of(const std::vector<float>& tokens) {
  return std::accumulate(tokens.begin(), tokens.end(), 0.0);
}

void score_translations(ScoreFlags& flags, const ModelFolder& folder) {
  if (flags.source.empty() || flags.target.empty()) {
    throw UsageError(
        fmt::format("{} translates: give its sources with --source and their translations with --target",
                    flags.model.path));
  }
  ModelText text =
      text_or_ids(folder, flags.token_ids, flags.strict, language_pair(folder, flags.settings->languages));
  const std::vector<std::string> sources = read_text(flags.source), targets = read_text(flags.target);
  if (sources.size() != targets.size()) {
    throw FormatError(fmt::format("{} has {}, but {} has {}; line i must translate line i", flags.source,
                                  counted(std::ssize(sources), "line"), flags.target, targets.size()));
  }
  Progress progress("scored", "sentences", static_cast<int64_t>(sources.size()));
  flags.options.progress = [&](int64_t done) { progress.show(done); };
  const auto source_ids = text.sources(sources, {.name = flags.source});
  const auto target_ids = text.targets(targets, {.name = flags.target});
  const auto scores = score(folder.translator(), source_ids, target_ids, flags.options);
  tell_unknown(text);
  std::string output;
  for (const std::vector<float>& tokens : scores) {
    output += flags.per_token ? with_tokens(sum_of(tokens), tokens) : with_tokens(sum_of(tokens), {});
  }
  write_text(flags.text.output, output);
}

void score_texts(ScoreFlags& flags, const ModelFolder& folder) {
  if (!flags.source.empty() || !flags.target.empty())
    throw UsageError(fmt::format("{} does not translate: give its text with --input", flags.model.path));
  if (flags.token_ids) throw UsageError("--token-ids is for translators; give text");
  if (flags.strict) throw UsageError("--strict is for translators; a text of any length is read in windows");
  const Tokenizer& tokenizer = folder.source_tokens();
  std::vector<std::string> texts = read_text(flags.text.input);
  if (flags.document && !texts.empty()) texts = {fmt::format("{}", fmt::join(texts, "\n"))};
  std::vector<std::vector<int32_t>> ids;
  int64_t all_tokens = 0;
  for (const std::string& text : texts) {
    ids.push_back(tokenizer.encode_ids(text));
    all_tokens += std::max<int64_t>(std::ssize(ids.back()), 1) - 1;
  }
  Progress progress("scored", "tokens", all_tokens);
  WindowOptions windows = flags.settings->windows;
  windows.progress = [&](int64_t done) { progress.show(done); };
  windows.sites = flags.options.sites;
  const auto scores = score_windows(folder.language_model(), ids, windows);
  progress.clear();
  std::string output;
  double sum = 0;
  for (const std::vector<float>& tokens : scores) {
    sum += sum_of(tokens);
    if (flags.per_token) output += with_tokens(sum_of(tokens), tokens);
    if (flags.per_line) {
      output += tokens.empty() ? "0.000000 0 -\n"
                               : fmt::format("{:.6f} {} {:.6f}\n", sum_of(tokens), tokens.size(),
                                             perplexity({&tokens, 1}));
    }
  }
  if (!flags.per_token && !flags.per_line) {
    if (all_tokens == 0)
      throw FormatError(
          fmt::format("{}: no token follows another; there is nothing to score", name_of(flags.text.input)));
    output = fmt::format("perplexity {:.6f}, {} of {}, log-probability {:.6f}\n", perplexity(scores),
                         counted(all_tokens, "token"), counted(std::ssize(texts), "text"), sum);
  }
  write_text(flags.text.output, output);
}

void run(ScoreFlags& flags) {
  flags.settings.take();
  flags.options.max_batch_tokens = flags.settings->windows.max_batch_tokens;
  ChangedHeads changed = changed_heads(flags.changes);
  flags.options.sites = changed.sites();
  const ModelFolder folder = load_model(flags.model);
  changed.check(folder);
  if (folder.language_model().facts().source_vocabulary > 0) {
    score_translations(flags, folder);
  } else {
    score_texts(flags, folder);
  }
}

}  // namespace

void add_score(Verb& app) {
  auto flags = std::make_shared<ScoreFlags>();
  Verb* verb = app.add_subcommand("score", "How probable translations are, or the perplexity of a text");
  add_model(*verb, flags->model)->required();
  auto* source = verb->add_option("--source", flags->source,
                                  "For a translator: source sentences, one per line (gzip or not)");
  auto* target = verb->add_option("--target", flags->target, "Their translations, line by line");
  source->needs(target);
  target->needs(source);
  add_text_flags(*verb, flags->text);
  verb->get_option("--input")
      ->description("For a causal model: its text, instead of standard input (gzip or not)")
      ->excludes(source);
  const auto of_texts = [&](Flag* option) { return option->excludes(source); };
  of_texts(verb->add_flag("--document", flags->document, "All lines are one text; else each is one"));
  flags->settings.add(*verb);
  for (const char* of_windows : {"--context", "--stride"}) of_texts(verb->get_option(of_windows));
  auto* per_line = of_texts(verb->add_flag("--per-line", flags->per_line,
                                           "Print the log-probability, tokens and perplexity of each text"));
  verb->add_flag("--per-token", flags->per_token,
                 "Print each token's log-probability after the sum; a translation's end token comes last")
      ->excludes(per_line);
  add_head_change_flags(*verb, flags->changes);
  verb->add_flag("--strict", flags->strict,
                 "For a translator: refuse a line that is longer than it reads; it is cut otherwise");
  verb->add_flag("--token-ids", flags->token_ids,
                 "The files hold token ids instead of text; for a translator");
  name_values(*verb, "FILE", {"--source", "--target"});
  group_flags(*verb, "Windows of a text", {"--document", "--per-line"});
  rare_flags(*verb, {"--token-ids"});
  for (const char* language : {"--from", "--to"}) verb->get_option(language)->rare(false);
  verb->footer(
      "Example:\n"
      "  multihead score model --source test.en --target test.de --per-token\n"
      "  multihead score gpt2 -i book.txt --document --stride 256");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
