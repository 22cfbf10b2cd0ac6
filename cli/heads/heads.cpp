// multihead heads: what every head of a model does on a text.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/corpus_flags.h"
#include "cli/file_endings.h"
#include "cli/head_changes.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads_report.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/setting_flags.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/corpus/corpus_files.h"
#include "multihead/heads/measures/inspect_heads.h"
#include "multihead/heads/reports/attention_file.h"
#include "multihead/heads/reports/pictures/draw_heads.h"
#include "multihead/heads/reports/report_json.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/nn/head_name.h"

namespace mh::cli {
namespace {

struct HeadsFlags {
  ModelFlags model;
  std::string output;
  CorpusFlags corpus;
  std::string text, target_text, text_pair, save, svg;
  std::vector<std::string> heads;
  SettingFlags settings;
  InspectOptions options;
  int64_t least_support = 10;
  bool json = false, numbers = false;

  Verb* verb = nullptr;
  bool given(const char* flag) const { return verb->get_option(flag)->count() > 0; }
  bool has_corpus() const { return !corpus.input.empty() || !corpus.conllu.empty(); }
};

/// The heads to draw, in the order in which they are named, each once.
std::vector<HeadName> heads_of(const Model& model, const std::vector<HeadPattern>& wanted) {
  std::vector<HeadName> heads;
  for (const HeadPattern& pattern : wanted) {
    for (HeadName& head : model.heads_named(pattern)) {
      if (std::find(heads.begin(), heads.end(), head) == heads.end()) heads.push_back(std::move(head));
    }
  }
  return heads;
}

void run(HeadsFlags& flags) {
  flags.settings.take(flags.options);
  CorpusFiles files = files_of(flags.corpus);
  const bool on_text = !flags.text.empty();
  for (const char* flag : {"--head", "--save", "--svg", "--numbers", "--target-text", "--text-pair"}) {
    if (!on_text && flags.given(flag))
      throw UsageError(fmt::format("{} needs a sentence: give --text", flag));
  }
  for (const char* flag : {"--target", "--target-conllu", "--alignment", "--input-pair"}) {
    if (on_text && !flags.has_corpus() && flags.given(flag))
      throw UsageError(
          fmt::format("{} belongs to the lines of -i or --conllu, which are missing; --text has {}", flag,
                      flag == std::string_view("--input-pair") ? "--text-pair" : "--target-text"));
  }
  if (flags.given("--least-support") && files.conllu.empty() && files.target_conllu.empty())
    throw UsageError("--least-support is for tables of relations: give --conllu or --target-conllu");
  check_utf8(flags.text, "--text");
  check_utf8(flags.target_text, "--target-text");
  check_utf8(flags.text_pair, "--text-pair");
  std::vector<HeadPattern> wanted;
  for (const std::string& head : flags.heads) wanted.emplace_back(head);

  const ModelFolder folder = load_model(flags.model);
  std::vector<HeadName> heads = heads_of(*folder.model, wanted);
  ChangedHeads changed = changed_heads(flags.corpus.changes);
  changed.check(folder);
  flags.options.observe.sites = changed.sites();

  std::string output;
  std::optional<HeadReport> report;
  if (!on_text || flags.has_corpus()) {
    if (!flags.has_corpus()) files.lines = read_text("");
    FilesCorpus text(std::move(files));
    Progress progress("read", "sentences");
    flags.options.observe.progress = [&](int64_t done) { progress.show(done); };
    flags.options.remark = [](const std::string& line) { remark(line); };
    report = inspect_heads(folder, text, flags.options);
    output += heads_table(*report) + relations_table(*report, flags.least_support) + aligners_table(*report);
  }
  std::optional<Observation> sentence;
  if (on_text) {
    ObserveTextOptions options_of_text{.sites = flags.options.observe.sites,
                                       .remark = [](const std::string& line) { remark(line); },
                                       .languages = flags.options.languages};
    if (!flags.text_pair.empty()) options_of_text.pair = flags.text_pair;
    if (!heads.empty() && flags.save.empty()) {  // a long text has many weights: only those that are shown
      options_of_text.keep.clear();
      for (const HeadName& head : heads) options_of_text.keep.push_back(weights_site(head));
    }
    sentence = observe_text(folder, flags.text, flags.target_text, options_of_text);
    if (!flags.svg.empty()) {
      write_text(flags.svg, heads.empty() ? draw_heads(*sentence) : draw_heads(*sentence, heads));
    }
    if (heads.empty()) heads = most_focused_heads(*sentence);
    HeatMapOptions options = picture_options();
    if (!flags.output.empty()) options.cells = HeatMapOptions::Cells::kShades;
    if (flags.numbers) options.cells = HeatMapOptions::Cells::kNumbers;
    if (sentence->targets == TargetsRead::kGreedy)
      output += (output.empty() ? "" : "\n") + wrapped("translation: " + sentence->translation, "", 80, "  ");
    for (const HeadName& head : heads) output += "\n" + head_picture(*sentence, head, options);
    output += "\n" + heat_map_legend(options.cells);
    if (!flags.save.empty()) save_attention(*sentence, flags.save);
  }
  if (flags.json)
    output = report_json({.model = flags.model.path,
                          .precision = flags.model.precision,
                          .report = report ? &*report : nullptr,
                          .sentence = sentence ? &*sentence : nullptr,
                          .heads = heads});
  write_text(flags.output, output);
}

}  // namespace

void add_heads(Verb& app) {
  auto flags = std::make_shared<HeadsFlags>();
  Verb* verb = flags->verb =
      app.add_subcommand("heads", "Show what each head does: statistics, relations, alignment, heat maps");
  add_model(*verb, flags->model, "The model folder, or demo, a translator that comes with multihead")
      ->required();
  add_output_flag(*verb, "-o,--output", flags->output, "Write to this file instead of standard output");
  add_corpus_flags(*verb, flags->corpus, {.trees = true, .alignment = true, .pairs = true});
  add_number(*verb, "--least-support", flags->least_support, {.low = 0},
             "Leave relations of fewer words out of the table");
  verb->add_option("--text", flags->text, "Sentence on which heads are drawn; needs no --input")
      ->each([](const std::string& text) {
        if (text.find_first_not_of(" \t\n") == std::string::npos)
          throw UsageError("--text: expected a sentence, got none");
      });
  verb->add_option("--target-text", flags->target_text,
                   "Its translation; without: the model's greedy translation");
  verb->add_option("--text-pair", flags->text_pair,
                   "A second text, which an encoder such as BERT reads together with --text");
  verb->add_option("--head", flags->heads,
                   "Head to draw, e.g. encoder.3.self_attention.1, or several: 'encoder.3.self_attention.*'; "
                   "may be given again; without: the most focused head of each kind")
      ->again();
  auto* numbers = verb->add_flag("--numbers", flags->numbers, "Draw numbers instead of colours or shades");
  expect_folder(
      verb->add_option("--save", flags->save,
                       "Save all attention weights on --text: FILE.safetensors, or a folder of .npy files"),
      "a folder of .npy files or one .safetensors file", ".safetensors");
  expect_ending(
      add_output_flag(*verb, "--svg", flags->svg,
                      "Draw an SVG picture on --text: each --head; without --head all heads, small"),
      ".svg", "an SVG picture");
  verb->add_flag("--json", flags->json, "Write JSON instead of tables and pictures")->excludes(numbers);
  flags->settings.add(*verb, flags->options);
  name_values(*verb, "FILE", {"--output", "--svg"});
  name_values(*verb, "HEAD", {"--head"});
  name_values(*verb, "DIR|FILE", {"--save"});
  group_flags(*verb, "Trees and alignments",
              {"--conllu", "--target-conllu", "--alignment", "--least-support"});
  group_flags(*verb, "One sentence",
              {"--text", "--target-text", "--text-pair", "--head", "--numbers", "--svg", "--save"});
  rare_flags(*verb, {"--least-support", "--target-text", "--input-pair", "--text-pair", "--numbers"});
  verb->footer(
      "Example:\n"
      "  multihead heads model -i test.en --target test.de\n"
      "  multihead heads model --conllu test.en.conllu --target-conllu test.de.conllu \\\n"
      "    --alignment test.align\n"
      "  multihead heads model --text 'the small dog sees a cat .' \\\n"
      "    --head encoder.0.self_attention.1\n"
      "  multihead heads model --text 'the small dog sees a cat .' --svg heads.svg\n"
      "  multihead heads bert --text 'two dogs run .' --text-pair 'a pair of dogs .' \\\n"
      "    --head 'encoder.0.self_attention.*'");
  add_heads_stats(*verb);
  add_heads_relations(*verb);
  add_heads_alignment(*verb);
  add_heads_circuit(*verb);
  add_heads_circuits(*verb);
  add_heads_similar(*verb);
  add_heads_compare(*verb);
  add_heads_where(*verb);
  add_heads_importance(*verb);
  add_heads_attribution(*verb);
  add_heads_contributions(*verb);
  add_heads_lens(*verb);
  add_heads_patch(*verb);
  add_heads_retrieval(*verb);
  add_heads_steer(*verb);
  add_heads_prune(*verb);
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
