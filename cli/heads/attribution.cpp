// multihead heads attribution: which tokens count for what a model says, by eight measures, and how faithful these are.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/heads/attribution_report.h"
#include "cli/heads/heads_verbs.h"
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
  std::string model = {}, output = {};
  std::string text = {}, second = {};
  std::vector<std::string> methods = {};
  AttributionOptions options = {};
  int position = 0;
  CorpusFiles files = {};
  FaithfulnessOptions corpus = {};
  bool json = false;
};

std::vector<AttributionMethod> methods_of(const std::vector<std::string>& names) {
  std::vector<AttributionMethod> methods;
  for (const std::string& wanted : names) {
    std::string all;
    std::optional<AttributionMethod> found;
    for (const auto& [name, method] : kAttributionMethodNames) {
      all += (all.empty() ? "" : "|") + std::string(name);
      if (wanted == name) found = method;
    }
    if (!found) throw UsageError(fmt::format("--method: expected {}, got {}", all, wanted));
    methods.push_back(*found);
  }
  return methods;
}

/// Flags that belong to a text or to a corpus alone.
void check_flags(const AttributionFlags& flags, const Verb& verb) {
  const bool on_text = !flags.text.empty();
  if (on_text == !flags.files.input.empty())
    throw UsageError("give --text, whose tokens are weighed, or -i, sentences on which methods are measured");
  for (const char* flag : {"--second", "--target-text", "--token", "--target-token"}) {
    if (!on_text && verb.get_option(flag)->count() > 0)
      throw UsageError(fmt::format("{} belongs to --text, which is missing", flag));
  }
  for (const char* flag : {"--target", "--input-pair", "--points", "--draws", "--seed"}) {
    if (on_text && verb.get_option(flag)->count() > 0)
      throw UsageError(fmt::format("{} belongs to -i, which is missing", flag));
  }
}

void run_faithfulness(AttributionFlags& flags) {
  flags.files.limits = text_limits();
  flags.corpus.attribution = flags.options;
  FilesCorpus corpus(flags.files);
  Progress progress("measured", "sentences");
  flags.corpus.progress = [&](int64_t done) { progress.show(done); };
  const Faithfulness found = flags.files.pairs.empty()
                                 ? faithfulness(load_model(flags.model), corpus, flags.corpus)
                                 : faithfulness(load_sentence_model(flags.model), corpus, flags.corpus);
  write_text(flags.output, flags.json ? faithfulness_json(found, flags.model) : faithfulness_table(found));
}

void run_attribution(AttributionFlags& flags, const Verb& verb) {
  check_flags(flags, verb);
  check_utf8(flags.text, "--text");
  check_utf8(flags.second, "--second");
  check_utf8(flags.options.target, "--target-text");
  check_utf8(flags.options.target_token, "--target-token");
  flags.options.methods = methods_of(flags.methods);
  if (verb.get_option("--token")->count() > 0) flags.options.position = flags.position;
  flags.options.remark = [](const std::string& line) { remark(line); };
  if (flags.text.empty()) return run_faithfulness(flags);
  const AttributionReport found =
      flags.second.empty()
          ? heads_attribution(load_model(flags.model), flags.text, flags.options)
          : heads_attribution(load_sentence_model(flags.model), flags.text, flags.second, flags.options);
  write_text(flags.output,
             flags.json ? attribution_json(found, flags.model, flags.text) : attribution_table(found));
}

}  // namespace

void add_heads_attribution(Verb& heads) {
  auto flags = std::make_shared<AttributionFlags>();
  Verb* verb =
      heads.add_subcommand("attribution", "Which tokens count for what a model says, by eight measures");
  add_model(*verb, flags->model, "The model folder, a .gguf file, or demo")->required();
  verb->add_option("--text", flags->text, "Text whose tokens are weighed");
  verb->add_option("--second", flags->second,
                   "Second text of an encoder: the cosine of both vectors is explained");
  verb->add_option("--target-text", flags->options.target,
                   "Translation of --text; without: the model's greedy translation");
  add_number(*verb, "--token", flags->position, {.low = 0},
             "Token whose log-probability is explained, counted from 0; without: the last word")
      ->default_str("");
  verb->add_option("--target-token", flags->options.target_token,
                   "Another token there; without --token, a causal model's next token");
  verb->add_option("--method", flags->methods,
                   "Method, or several: rollout; may be given again; without: all")
      ->again();
  verb->add_option("-i,--input", flags->files.input,
                   "Sentences (gzip or not): how faithful the methods are, by replacing tokens");
  verb->add_option("--target", flags->files.target,
                   "Their translations, line by line; without: the model's greedy translations");
  verb->add_option("--input-pair", flags->files.pairs,
                   "Second texts of --input, line by line: an encoder's cosines are explained");
  add_number(*verb, "--points", flags->corpus.points, {.low = 1, .high = 10000},
             "Points of the curve; longer texts replace several tokens a point");
  add_number(*verb, "--draws", flags->corpus.draws, {.low = 1, .high = 10000},
             "Random orders of a sentence, the floor");
  add_number(*verb, "--seed", flags->corpus.seed, {}, "Seed of random orders");
  add_number(*verb, "--steps", flags->options.steps, {.low = 1, .high = 100000},
             "Steps of integrated gradients");
  add_number(*verb, "--max-batch-tokens", flags->options.batch_tokens, {.low = 1}, "Most tokens in a batch");
  verb->add_flag("--json", flags->json, "Write JSON instead of a table");
  add_output_flag(*verb, "-o,--output", flags->output, "Write to this file instead of standard output");
  add_limit_flags(*verb);
  name_values(*verb, "FILE", {"--input", "--target", "--input-pair"});
  name_values(*verb, "METHOD", {"--method"});
  group_flags(*verb, "One text", {"--text", "--second", "--target-text", "--token", "--target-token"});
  group_flags(*verb, "A corpus", {"--input", "--target", "--input-pair", "--points", "--draws", "--seed"});
  rare_flags(*verb, {"--steps", "--points", "--draws", "--seed", "--max-batch-tokens"});
  verb->footer(
      "Example:\n"
      "  multihead heads attribution demo --text 'two dogs run .' --token 1\n"
      "  multihead heads attribution minilm --text 'two dogs run .' \\\n"
      "    --second 'a pair of dogs is running .'\n"
      "  multihead heads attribution demo -i test.en --target test.de");
  verb->callback([flags, verb] { run_attribution(*flags, *verb); });
}

}  // namespace mh::cli
