// multihead heads lens: what the residual stream says after each layer.
#include <memory>
#include <string>
#include <utility>

#include "cli/common.h"
#include "cli/file_endings.h"
#include "cli/head_changes.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/lens_report.h"
#include "cli/heads/report_flags.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "multihead/heads/lens/heads_lens.h"
#include "multihead/heads/reports/lens_json.h"
#include "multihead/heads/reports/pictures/draw_lens.h"

namespace mh::cli {
namespace {

struct LensFlags {
  ReportFlags<LensOptions> report = {};
  std::string text = {}, target = {}, pair = {}, answer = {}, second = {}, svg = {};
  HeadChangeFlags changes = {};
  int position = 0;
};

void run_lens(const LensFlags& flags, const Verb& verb) {
  for (const auto& [text, flag] :
       {std::pair(&flags.text, "--text"), std::pair(&flags.target, "--target-text"),
        std::pair(&flags.pair, "--text-pair"), std::pair(&flags.answer, "--answer"),
        std::pair(&flags.second, "--second")})
    check_utf8(*text, flag);
  LensOptions options = flags.report.settings.given();
  options.answer = flags.answer;
  options.target = flags.target;
  options.pair = flags.pair;
  if (verb.get_option("--position")->count() > 0) options.position = flags.position;
  ChangedHeads changed = changed_heads(flags.changes);
  options.sites = changed.sites();
  options.remark = [](const std::string& line) { remark(line); };
  const ScoredModel model = load_scored(flags.report.model_to_run());
  changed.check(model.folder());
  const LensReport found = heads_lens(model, flags.text, flags.second, options);
  if (!flags.svg.empty()) write_text(flags.svg, draw_lens(found));
  flags.report.write(found, options, lens_json, lens_table);
}

}  // namespace

void add_heads_lens(Verb& heads) {
  auto flags = std::make_shared<LensFlags>();
  Verb* verb = heads.add_subcommand(
      "lens", "What the residual stream says after each layer, read by the model's own end");
  flags->report.add(*verb);
  verb->add_option("TEXT,--text", flags->text, "The text that the model reads")->required();
  verb->add_option(
      "--answer", flags->answer,
      "A word whose rank and log-probability are shown, of a classifier a label; without: the token "
      "that the text has there, else what the model says in the end");
  add_number(*verb, "--position", flags->position, {},
             "Read the stream of this token alone, counted from 0, or from the end: -1 is the last")
      ->default_str("");
  verb->add_option("--target-text", flags->target,
                   "Translation of the text; without: the model's greedy translation");
  verb->add_option("--text-pair", flags->pair,
                   "Second text, which an encoder such as a cross-encoder reads together with the first");
  verb->add_option("--second", flags->second,
                   "Of a model that makes vectors: a text whose vector each layer's is compared with");
  add_head_change_flags(*verb, flags->changes);
  expect_ending(add_output_flag(*verb, "--svg", flags->svg,
                                "Draw layers by tokens, the first word of each, as an SVG picture"),
                ".svg", "an SVG picture");
  name_values(*verb, "FILE", {"--svg"});
  name_values(*verb, "WORD", {"--answer"});
  verb->footer(
      "Example:\n"
      "  multihead heads lens smollm2.gguf 'The capital of France is' --answer Paris \\\n"
      "    --position -1\n"
      "  multihead heads lens bert 'Paris is the capital of [MASK].' --sublayers\n"
      "  multihead heads lens demo 'the small dog sees a cat .' --svg lens.svg\n"
      "  multihead heads lens distilbert-sst2 'A lovely film.' --answer POSITIVE\n"
      "  multihead heads lens minilm 'A man plays a guitar.' \\\n"
      "    --second 'Someone plays music.'");
  verb->callback([flags, verb] { run_lens(*flags, *verb); });
}

}  // namespace mh::cli
