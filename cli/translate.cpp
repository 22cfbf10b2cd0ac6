// multihead translate: a line in, its translation out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/model_text.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/generate/translate.h"
#include "multihead/models/model_folder.h"

namespace mh::cli {
namespace {

struct TranslateFlags {
  std::string model, prefix;
  TextFlags text;
  TranslateOptions options;
  AlignOptions align;
  bool greedy = false, n_best = false, alignment = false, token_ids = false;
  std::vector<std::string> mute;
};

std::string alignment_text(const Hypothesis& hypothesis) {
  std::string text;
  for (const AlignmentPoint& point : hypothesis.alignment) {
    text += fmt::format("{}{}-{}", text.empty() ? "" : " ", point.source, point.target);
  }
  return text;
}

// The lines of one sentence; a sentence of no tokens is an empty line.
std::string output_of(const std::vector<Hypothesis>& hypotheses, size_t number, const ModelText& text,
                      const TranslateFlags& flags) {
  static const std::vector<Hypothesis> kEmpty{Hypothesis{}};
  std::string lines;
  for (const Hypothesis& hypothesis : hypotheses.empty() ? kEmpty : hypotheses) {
    const std::string translation = hypothesis.tokens.empty() ? "" : text.text(hypothesis.tokens);
    if (flags.n_best) {
      lines += fmt::format("{} ||| {} ||| {:.6f} {:.6f}", number, translation, hypothesis.score,
                           hypothesis.log_probability);
    } else {
      lines += translation;
    }
    if (flags.alignment && (flags.n_best || !hypotheses.empty()))
      lines += " ||| " + alignment_text(hypothesis);
    lines += '\n';
  }
  return lines;
}

void run(TranslateFlags& flags) {
  if (flags.greedy) flags.options.search.beam_size = 1;
  check_search(flags.options.search);
  Interventions interventions;
  for (const std::string& head : flags.mute) interventions.mute(head);
  if (!interventions.empty()) flags.options.interventions = &interventions;
  if (flags.alignment) flags.options.align = flags.align;

  const ModelFolder folder = load_model_folder(flags.model);
  flags.options.search.suppressed = folder.suppressed;
  ModelText text(folder, text_options(flags.token_ids));
  const std::vector<std::string> lines = read_text(flags.text.input);
  const auto sources = text.sources_to_translate(lines, {.name = name_of(flags.text.input)});
  ModelText::Ids prefixes;
  if (!flags.prefix.empty()) {
    prefixes = text.targets(read_text(flags.prefix), {.name = flags.prefix});
    if (prefixes.size() != sources.size()) {
      throw FormatError(fmt::format("{}: expected a line for each of the {} lines of the input, got {}",
                                    flags.prefix, sources.size(), prefixes.size()));
    }
  }

  Progress progress("translated", "sentences", static_cast<int64_t>(sources.size()));
  flags.options.progress = [&](int64_t done) { progress.show(done); };
  const auto translations = translate(folder.translator(), sources, flags.options, prefixes);
  tell_unknown(text);
  std::string output;
  for (size_t i = 0; i < translations.size(); ++i) output += output_of(translations[i], i, text, flags);
  write_text(flags.text.output, output);
}

}  // namespace

void add_translate(CLI::App& app) {
  auto flags = std::make_shared<TranslateFlags>();
  SearchOptions& search = flags->options.search;
  CLI::App* verb = app.add_subcommand("translate", "Translate text with a trained model, line by line");
  verb->add_option("--model", flags->model, "The model folder")->required();
  add_text_flags(*verb, flags->text);
  auto* beam = add_number(*verb, "--beam-size", search.beam_size, {.low = 1, .high = kLargestBeam},
                          "Hypotheses side by side; 1: greedy");
  verb->add_flag("--greedy", flags->greedy, "The same as --beam-size 1")->excludes(beam);
  add_number(*verb, "--n-best", search.n_best, {.low = 1, .high = kLargestBeam},
             "Write this many hypotheses of each line: id ||| text ||| score log-probability")
      ->default_str("")
      ->each([flags](const std::string&) { flags->n_best = true; });
  add_number(*verb, "--length-penalty", search.length_penalty.alpha, {.low = -100, .high = 100},
             "Exponent of the length penalty; 0: none");
  add_choice(*verb, "--length-penalty-form", search.length_penalty.form,
             {{"divide", LengthPenalty::Form::kDivide}, {"gnmt", LengthPenalty::Form::kGnmt}},
             "divide: score / length^a; gnmt: score / ((5 + length) / 6)^a");
  add_number(*verb, "--min-length", search.min_length, {.low = 0}, "Tokens that a translation has at least");
  add_number(*verb, "--max-length", search.max_length, {.low = 1}, "Tokens that a translation has at most");
  add_number(*verb, "--max-length-factor", search.max_length_factor, {.low = 0},
             "At most this many times the source's tokens; 0: no such limit");
  add_number(*verb, "--max-batch-tokens", flags->options.max_batch_tokens, {.low = 1},
             "Source tokens of one batch");
  verb->add_option("--prefix", flags->prefix,
                   "A file with the beginning of each translation (empty line: none)");
  verb->add_flag("--alignment", flags->alignment,
                 "Append which source token each target token looks at: ||| 0-0 2-1 ...");
  add_number(*verb, "--alignment-layer", flags->align.layer, {.low = -1},
             "Decoder layer to read it from; -1: the last");
  add_number(*verb, "--alignment-head", flags->align.head, {.low = -1},
             "Head to read it from; -1: the mean of all");
  verb->add_option("--mute", flags->mute,
                   "Silence a head, e.g. encoder.3.self_attention.1; may be given again")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_flag("--token-ids", flags->token_ids, "Token ids in, token ids out, instead of text");
  verb->footer(
      "Example:\n"
      "  echo 'the small dog sees a cat .' | multihead translate --model model\n"
      "  multihead translate --model model -i test.en -o test.out --beam-size 8 --n-best 3");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
