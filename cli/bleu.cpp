// multihead bleu: scores translations.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/options.h"
#include "cli/setting_flags.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/evaluate/bleu.h"
#include "multihead/evaluate/bootstrap.h"
#include "multihead/io/config.h"

namespace mh::cli {
namespace {

struct BleuFlags {
  std::vector<std::string> references;
  TextFlags text;
  BleuConfig bleu;
  SettingFlags how, samples;
  std::vector<std::string> others;
  BootstrapConfig bootstrap;
  bool confidence = false;
  bool score_only = false;
  bool json = false;
  int width = 2;
};

// What --json prints.
struct SystemReport {
  std::string system;
  double score = 0;
  std::vector<double> precisions;
  double brevity_penalty = 0;
  double ratio = 0;
  int64_t hyp_len = 0;
  int64_t ref_len = 0;
  std::optional<double> mean;
  std::optional<double> half_width;
  std::optional<double> p_value;

  template <class V>
  void visit(V& v) {
    v("system", system);
    v("score", score);
    v("precisions", precisions);
    v("brevity_penalty", brevity_penalty);
    v("ratio", ratio);
    v("hyp_len", hyp_len);
    v("ref_len", ref_len);
    v("mean", mean);
    v("half_width", half_width);
    v("p_value", p_value);
  }
};
struct Report {
  std::string signature;
  std::vector<SystemReport> systems;

  template <class V>
  void visit(V& v) {
    v("signature", signature);
    v("systems", systems);
  }
};

SystemReport report_of(const std::string& name, const BleuScore& score) {
  return {.system = name,
          .score = score.score,
          .precisions = {score.precisions.begin(), score.precisions.end()},
          .brevity_penalty = score.brevity_penalty,
          .ratio = score.ratio(),
          .hyp_len = score.counts.hyp_len,
          .ref_len = score.counts.ref_len,
          .mean = {},
          .half_width = {},
          .p_value = {}};
}

// Reads `path`; a file with another number of lines than the reference is an error that names both.
std::vector<std::string> read_beside(const std::string& path, const std::string& reference, size_t lines) {
  std::vector<std::string> text = read_text(path);
  if (text.size() != lines) {
    throw FormatError(
        fmt::format("{} has {}, {} has {}; line i of one must be a translation of line i of the other",
                    name_of(path), counted(std::ssize(text), "line"), reference, lines));
  }
  return text;
}

std::string plain_text(const Report& report, const std::vector<BleuScore>& scores, const BleuFlags& flags) {
  if (flags.score_only) {
    std::string text;
    for (const SystemReport& system : report.systems)
      text += fmt::format("{:.{}f}\n", system.score, flags.width);
    return text;
  }
  std::string text;
  size_t longest = 6;
  std::vector<std::string> names;
  for (const SystemReport& system : report.systems) {
    names.push_back(printable_line(system.system));
    longest = std::max(longest, names.back().size());
  }
  for (size_t s = 0; s < scores.size(); ++s) {
    if (scores.size() > 1) text += fmt::format("{:<{}}  ", names[s], longest);
    text += scores[s].line(flags.width) + "\n";
  }
  if (report.systems[0].mean) {
    text +=
        fmt::format("{:<{}}  {:>7}  {:>7}  {:>7}  {:>6}\n", "system", longest, "BLEU", "mean", "95 %", "p");
    for (size_t s = 0; s < report.systems.size(); ++s) {
      const SystemReport& system = report.systems[s];
      text +=
          fmt::format("{:<{}}  {:7.{}f}  {:7.{}f}  {:>7}", names[s], longest, system.score, flags.width,
                      *system.mean, flags.width, fmt::format("+-{:.{}f}", *system.half_width, flags.width));
      text += system.p_value
                  ? fmt::format("  {:.4f}{}\n", *system.p_value, *system.p_value < 0.05 ? " *" : "")
                  : "\n";
    }
  }
  return text + report.signature + "\n";
}

// A flag that would change nothing is a mistake.
void check_flags(const Verb& verb, const BleuFlags& flags) {
  const auto given = [&](const char* flag) { return verb.get_option(flag)->count() > 0; };
  if (given("--language") && flags.bleu.tokenizer != BleuTokenizer::kMoses)
    throw UsageError("--language needs --tokenize moses; add that or leave out --language");
  const bool takes_a_value =
      flags.bleu.smoothing == BleuSmoothing::kFloor || flags.bleu.smoothing == BleuSmoothing::kAddK;
  if (given("--smooth-value") && !takes_a_value)
    throw UsageError("--smooth-value needs --smooth floor or --smooth add-k");
  for (const char* flag : {"--samples", "--seed"}) {
    if (given(flag) && !given("--paired") && !flags.confidence)
      throw UsageError(fmt::format("{} needs --confidence or --paired", flag));
  }
}

void run(const BleuFlags& flags) {
  std::vector<std::vector<std::string>> references;
  for (const std::string& path : flags.references) {
    references.push_back(references.empty() ? read_text(path)
                                            : read_beside(path, flags.references[0], references[0].size()));
  }
  if (references[0].empty())
    throw FormatError(flags.references[0] + ": no lines; a reference is needed to score against");
  const Bleu bleu(flags.bleu, references);

  std::vector<std::string> systems{flags.text.input};
  systems.insert(systems.end(), flags.others.begin(), flags.others.end());
  Report report{.signature = bleu.signature(), .systems = {}};
  std::vector<BleuScore> scores;
  std::vector<std::vector<BleuCounts>> counts;
  for (const std::string& path : systems) {
    counts.push_back(bleu.counts(read_beside(path, flags.references[0], bleu.size())));
    BleuCounts sum;
    for (const BleuCounts& sentence : counts.back()) sum += sentence;
    scores.push_back(bleu_of_counts(sum, flags.bleu));
    report.systems.push_back(report_of(name_of(path), scores.back()));
  }
  if (flags.confidence || systems.size() > 1) {
    const auto results = paired_bootstrap(counts, flags.bleu, flags.bootstrap);
    for (size_t s = 0; s < results.size(); ++s) {
      report.systems[s].mean = results[s].mean;
      report.systems[s].half_width = results[s].half_width;
      report.systems[s].p_value = results[s].p_value;
    }
    report.signature += fmt::format("|bs:{}|seed:{}", flags.bootstrap.samples, flags.bootstrap.seed);
  }
  write_text(flags.text.output, flags.json ? to_json(report) : plain_text(report, scores, flags));
}

}  // namespace

void add_bleu(Verb& app) {
  auto flags = std::make_shared<BleuFlags>();
  Verb* verb =
      app.add_subcommand("bleu", "BLEU of translations against references, with sacreBLEU's figures");
  verb->footer(
      "Examples:\n"
      "  multihead translate --model model -i test.en | multihead bleu test.de\n"
      "  multihead bleu test.de -i ours.de --paired theirs.de --lowercase");
  verb->add_option("references", flags->references, "Reference translations, one per line; one file or more")
      ->required();
  add_text_flags(*verb, flags->text);
  flags->how.add(*verb, flags->bleu);
  verb->add_option("--paired", flags->others,
                   "Translations of other systems, compared with those of -i by paired bootstrap");
  verb->add_flag("--confidence", flags->confidence, "Mean and 95 % interval by bootstrap resampling");
  flags->samples.add(*verb, flags->bootstrap);
  auto* score_only = verb->add_flag("--score-only", flags->score_only, "Print the scores and nothing else");
  verb->add_flag("--json", flags->json, "Print everything as JSON")->excludes(score_only);
  add_number(*verb, "--width", flags->width, {.low = 0, .high = 12},
             "Digits of the score after the decimal point");
  name_values(*verb, "FILE", {"references", "--paired"});
  group_flags(*verb, "Significance by bootstrap resampling", {"--paired", "--confidence"});
  group_flags(*verb, "Output", {"--score-only", "--width", "--json"});
  rare_flags(*verb, {"--width"});
  verb->callback([flags, verb] {
    flags->how.take(flags->bleu);
    flags->samples.take(flags->bootstrap);
    check_flags(*verb, *flags);
    run(*flags);
  });
}

}  // namespace mh::cli
