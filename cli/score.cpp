// multihead score: how probable given translations are.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <numeric>
#include <string>

#include "cli/common.h"
#include "cli/help_format.h"
#include "cli/load_model.h"
#include "cli/model_text.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/generate/score.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/model_folder.h"

namespace mh::cli {
namespace {

struct ScoreFlags {
  std::string model, source, target, output;
  ScoreOptions options;
  bool per_token = false, token_ids = false;
  std::vector<std::string> mute;
};

void run(ScoreFlags& flags) {
  Interventions interventions;
  for (const std::string& head : flags.mute) interventions.mute(head);
  if (!interventions.empty()) flags.options.interventions = &interventions;

  const ModelFolder folder = load_model(flags.model);
  ModelText text(folder, text_options(flags.token_ids));
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
    output += fmt::format("{:.6f}", std::accumulate(tokens.begin(), tokens.end(), 0.0));
    if (flags.per_token) {
      for (const float token : tokens) output += fmt::format(" {:.6f}", token);
    }
    output += '\n';
  }
  write_text(flags.output, output);
}

}  // namespace

void add_score(CLI::App& app) {
  auto flags = std::make_shared<ScoreFlags>();
  CLI::App* verb = app.add_subcommand("score", "Print the log-probability of given translations");
  add_model(*verb, flags->model)->required();
  verb->add_option("--source", flags->source, "Source sentences, one per line (gzip or not)")->required();
  verb->add_option("--target", flags->target, "Their translations, line by line")->required();
  add_output_flag(*verb, "-o,--output", flags->output, "Write to this file instead of standard output");
  add_limit_flags(*verb);
  verb->add_flag("--per-token", flags->per_token,
                 "Print each token's log-probability after the sum; the end token comes last");
  add_number(*verb, "--max-batch-tokens", flags->options.max_batch_tokens, {.low = 1},
             "Most source and target tokens in a batch");
  verb->add_option("--mute", flags->mute, "Mute a head, e.g. encoder.3.self_attention.1; may be given again")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_flag("--token-ids", flags->token_ids, "The files hold token ids instead of text");
  name_values(*verb, "FILE", {"--source", "--target", "--output"});
  name_values(*verb, "HEAD", {"--mute"});
  rare_flags(*verb, {"--max-batch-tokens", "--token-ids"});
  verb->footer(
      "Example:\n"
      "  multihead score model --source test.en --target test.de --per-token");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
