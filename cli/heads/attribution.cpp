// multihead heads attribution: which tokens count for what a model says, by eight measures, and how faithful these are.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "cli/common.h"
#include "cli/heads/attribution_report.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "multihead/base/error.h"
#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/attribution/heads_attribution.h"
#include "multihead/heads/corpus/corpus_files.h"
#include "multihead/heads/reports/attribution_json.h"

namespace mh::cli {
namespace {

struct AttributionFlags {
  ReportFlags<FaithfulnessOptions> report = {};  // of one text its AttributionOptions
  std::string text = {}, second = {}, pair = {};
  std::string target = {}, target_token = {}, label = {};
  int position = 0;
  CorpusFiles files = {};
};

/// Flags that belong to a text or to a corpus alone.
void check_flags(const AttributionFlags& flags, const Verb& verb) {
  const bool on_text = !flags.text.empty();
  if (on_text == !flags.files.input.empty())
    throw UsageError("give --text, whose tokens are weighed, or -i, sentences on which methods are measured");
  for (const char* flag : {"--second", "--text-pair", "--target-text", "--token", "--target-token"}) {
    if (!on_text && verb.get_option(flag)->count() > 0)
      throw UsageError(fmt::format("{} belongs to --text, which is missing", flag));
  }
  for (const char* flag : {"--target", "--input-pair", "--points", "--draws", "--seed"}) {
    if (on_text && verb.get_option(flag)->count() > 0)
      throw UsageError(fmt::format("{} belongs to -i, which is missing", flag));
  }
}

void run_faithfulness(const AttributionFlags& flags, FaithfulnessOptions options) {
  CorpusFiles files = flags.files;
  files.limits = text_limits();
  FilesCorpus corpus(files);
  Progress progress("measured", "sentences");
  options.progress = [&](int64_t done) { progress.show(done); };
  const ModelFlags model = flags.report.model_to_run();
  flags.report.write(files.pairs.empty() ? faithfulness(load_model(model), corpus, options)
                                         : faithfulness(load_sentences(model), corpus, options),
                     options, faithfulness_json, faithfulness_table);
}

void run_attribution(const AttributionFlags& flags, const Verb& verb) {
  check_flags(flags, verb);
  check_utf8(flags.text, "--text");
  check_utf8(flags.second, "--second");
  check_utf8(flags.pair, "--text-pair");
  check_utf8(flags.target, "--target-text");
  check_utf8(flags.target_token, "--target-token");
  check_utf8(flags.label, "--label");
  FaithfulnessOptions settings = flags.report.settings.given();
  AttributionOptions& options = settings.attribution;
  options.pair = flags.pair;
  options.target = flags.target;
  options.target_token = flags.target_token;
  options.label = flags.label;
  if (verb.get_option("--token")->count() > 0) options.position = flags.position;
  options.remark = [](const std::string& line) { remark(line); };
  if (flags.text.empty()) return run_faithfulness(flags, std::move(settings));
  const ModelFlags model = flags.report.model_to_run();
  flags.report.write(
      flags.second.empty() ? heads_attribution(load_model(model), flags.text, options)
                           : heads_attribution(load_sentences(model), flags.text, flags.second, options),
      options,
      [&](const AttributionReport& found, const std::string& name) {
        return attribution_json(found, name, flags.text);
      },
      attribution_table);
}

}  // namespace

void add_heads_attribution(Verb& heads) {
  auto flags = std::make_shared<AttributionFlags>();
  Verb* verb =
      heads.add_subcommand("attribution", "Which tokens count for what a model says, by eight measures");
  flags->report.add(*verb);
  verb->add_option("--text", flags->text, "Text whose tokens are weighed");
  verb->add_option("--second", flags->second,
                   "Second text of an encoder: the cosine of both vectors is explained");
  verb->add_option("--text-pair", flags->pair,
                   "Second text, which an encoder such as a cross-encoder reads together with --text");
  verb->add_option("--target-text", flags->target,
                   "Translation of --text; without: the model's greedy translation");
  add_number(*verb, "--token", flags->position, {.low = 0},
             "Token whose log-probability is explained, counted from 0; without: the last word")
      ->default_str("");
  verb->add_option("--target-token", flags->target_token,
                   "Another token there; without --token, a causal model's next token");
  verb->add_option("--label", flags->label,
                   "Label of a classifier whose logit is explained; without: the best one of each text");
  verb->add_option("-i,--input", flags->files.input,
                   "Sentences (gzip or not): how faithful the methods are, by replacing tokens");
  verb->add_option("--target", flags->files.target,
                   "Their translations, line by line; without: the model's greedy translations");
  verb->add_option("--input-pair", flags->files.pairs,
                   "Second texts of --input, line by line: an encoder's cosines are explained");
  add_limit_flags(*verb);
  name_values(*verb, "FILE", {"--input", "--target", "--input-pair"});
  name_values(*verb, "LABEL", {"--label"});
  group_flags(*verb, "One text",
              {"--text", "--second", "--text-pair", "--target-text", "--token", "--target-token"});
  group_flags(*verb, "A corpus", {"--input", "--target", "--input-pair"});
  verb->footer(
      "Example:\n"
      "  multihead heads attribution demo --text 'two dogs run .' --token 1\n"
      "  multihead heads attribution minilm --text 'two dogs run .' \\\n"
      "    --second 'a pair of dogs is running .'\n"
      "  multihead heads attribution distilbert-sst2 --text 'A lovely film.' \\\n"
      "    --label POSITIVE\n"
      "  multihead heads attribution cross-encoder --text 'Where is Bern?' \\\n"
      "    --text-pair 'Bern is a city in Switzerland.'\n"
      "  multihead heads attribution demo -i test.en --target test.de");
  verb->callback([flags, verb] { run_attribution(*flags, *verb); });
}

}  // namespace mh::cli
