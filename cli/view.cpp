// multihead view: the heads of a model on a text as one HTML file.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/corpus_flags.h"
#include "cli/head_changes.h"
#include "cli/load_model.h"
#include "cli/open_file.h"
#include "cli/progress.h"
#include "cli/setting_flags.h"
#include "cli/shell_words.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/checkpoint_names.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/corpus/corpus_files.h"
#include "multihead/heads/reports/page/heads_page.h"
#include "multihead/heads/reports/page/live_model.h"
#include "multihead/heads/reports/page/page_run.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/tasks/translate_text.h"

namespace mh::cli {
namespace {

constexpr const char* kShown = "Texts and models";
constexpr const char* kReports = "Reports";
constexpr const char* kCorpus = "A corpus";

struct ViewInputs {
  std::vector<std::string> target = {};
  std::string with = {}, checkpoints = {};
  std::string circuit = {}, retrieval = {}, aligners = {};
  std::string corpus = {}, corpus_target = {}, conllu = {}, target_conllu = {}, alignment = {};

  template <class V>
  void visit(V& v) {
    v("target", target, {},
      {.group = kShown,
       .help = "A translation, for each text in turn; without: the model's greedy translations"});
    v("with", with, {},
      {.group = kShown, .help = "A second model, beside it on the same texts", .value = "MODEL"});
    v("checkpoints", checkpoints, {},
      {.group = kShown,
       .help = "Show the checkpoints of the training in this folder instead, through time",
       .rare = true,
       .value = "DIR"});
    v("circuit", circuit, {},
      {.group = kReports, .help = "A circuit of MODEL, as `heads circuit --json` wrote it", .value = "FILE"});
    v("retrieval", retrieval, {},
      {.group = kReports,
       .help = "Its retrieval heads, as `heads retrieval --json` wrote them",
       .rare = true,
       .value = "FILE"});
    v("aligners", aligners, {},
      {.group = kReports,
       .help = "Its aligning heads, as `heads alignment --json` wrote them",
       .rare = true,
       .value = "FILE"});
    v("corpus", corpus, {},
      {.group = kCorpus,
       .help = "Sentences, one a line: what heads do is measured on them",
       .otherwise = "the texts",
       .rare = true,
       .value = "FILE"});
    v("corpus_target", corpus_target, {},
      {.group = kCorpus,
       .help = "Their translations, line by line",
       .otherwise = "greedy translations",
       .rare = true,
       .value = "FILE"});
    v("conllu", conllu, {},
      {.group = kCorpus,
       .help = "Dependency trees (CoNLL-U) of --corpus, or the corpus itself",
       .value = "FILE"});
    v("target_conllu", target_conllu, {},
      {.group = kCorpus, .help = "Dependency trees of the translations", .rare = true, .value = "FILE"});
    v("alignment", alignment, {},
      {.group = kCorpus, .help = "Word alignments (Pharaoh format)", .rare = true, .value = "FILE"});
  }

  bool has_reports() const { return !circuit.empty() || !retrieval.empty() || !aligners.empty(); }
  bool has_corpus() const { return !corpus.empty() || !conllu.empty(); }
};

struct ViewFlags {
  ModelFlags model;
  std::string input, output = "heads.html";
  std::vector<std::string> texts;
  FlaggedSettings<ViewInputs> inputs;
  FlaggedSettings<ViewSettings> shown;
  HeadChangeFlags changes = {};
  bool open = false;

  Verb* verb = nullptr;
};

/// What was typed, but for the flags that change nothing on the page.
std::string command_of(const Verb& verb) {
  std::string command = verb.typed_name();
  for (const auto& flag : verb.flags()) {
    if (flag->is_named("--output") || flag->is_named("--open") || flag->is_named("--max-size")) continue;
    const std::string name = flag->is_argument() ? "" : " " + flag->get_name();
    if (flag->most == 0 && flag->times > 0) command += name;
    for (const std::string& value : flag->given) command += name + " " + shell_word(value);
  }
  return command;
}

std::vector<PageText> texts_of(const ViewFlags& flags) {
  std::vector<std::string> sources = flags.texts;
  if (!flags.input.empty()) {
    for (std::string& line : read_text(flags.input)) sources.push_back(std::move(line));
  }
  if (sources.empty()) throw UsageError("give a text to look at, or a file of them with -i");
  if (!flags.inputs->target.empty() && flags.inputs->target.size() != sources.size())
    throw UsageError(fmt::format("{} and {}; give --target once for each text",
                                 counted(std::ssize(sources), "text"),
                                 counted(std::ssize(flags.inputs->target), "translation")));
  std::vector<PageText> texts;
  for (size_t i = 0; i < sources.size(); ++i) {
    check_utf8(sources[i], "the text");
    texts.push_back(
        {.source = sources[i], .target = flags.inputs->target.empty() ? "" : flags.inputs->target[i]});
    check_utf8(texts.back().target, "--target");
  }
  return texts;
}

CorpusFiles corpus_files(const ViewInputs& of) {
  check_alignment(of.alignment, of.corpus_target, of.target_conllu, "--corpus-target");
  return readable_again({.input = of.corpus,
                         .target = of.corpus_target,
                         .conllu = of.conllu,
                         .target_conllu = of.target_conllu,
                         .alignment = of.alignment});
}

PageReport report_in(const std::string& file) {
  return file.empty() ? PageReport() : PageReport{.json = read_file(file), .name = file};
}

struct RunToShow {
  std::string name, path;
  std::optional<int64_t> update = std::nullopt;
};

std::string name_of_model(const std::string& path) {
  const std::filesystem::path clean = std::filesystem::path(path).lexically_normal();
  const std::string name =
      clean.has_filename() ? clean.filename().string() : clean.parent_path().filename().string();
  return name.empty() ? path : name;
}

/// All runs read one text: the translations of the first model, of a training those of its last checkpoint.
void translate_missing(const ModelFolder& folder, const PageRunOptions& run, std::vector<PageText>& texts) {
  if (!translates(folder) || !texts.front().target.empty()) return;
  std::vector<std::string> sources;
  for (const PageText& text : texts) sources.push_back(text.source);
  TranslateOptions options{.languages = run.languages, .sites = run.sites};
  options.search.beam_size = 1;
  const std::vector<std::string> translations = translate_text(folder, sources, options);
  for (size_t i = 0; i < texts.size(); ++i) texts[i].target = translations[i];
}

std::vector<RunToShow> runs_of(const ViewFlags& flags) {
  std::vector<RunToShow> runs;
  if (!flags.inputs->checkpoints.empty()) {
    const std::vector<int64_t> updates = checkpoint_updates(flags.inputs->checkpoints);
    if (updates.empty())
      throw FileError(flags.inputs->checkpoints + " has no checkpoints; train with --keep to have some");
    for (const int64_t update : updates)
      runs.push_back({fmt::format("update {}", update),
                      checkpoint_of(flags.inputs->checkpoints, update).string(), update});
    return runs;
  }
  runs.push_back({name_of_model(flags.model.path), flags.model.path});
  if (!flags.inputs->with.empty()) runs.push_back({name_of_model(flags.inputs->with), flags.inputs->with});
  return runs;
}

void check_inputs(const ViewInputs& of, const LiveOptions& live) {
  if (!of.with.empty() && !of.checkpoints.empty())
    throw UsageError("--with compares two models and --checkpoints follows one; give one of them");
  if (of.has_reports() && !of.checkpoints.empty())
    throw UsageError(
        "--circuit, --retrieval and --aligners are of one model, and --checkpoints shows several; leave it "
        "out");
  if (live.weights != LiveNumbers::kFile && !live.live)
    throw UsageError("--live-weights is how a page holds its model; give --live, too");
  if (live.live && (!of.with.empty() || !of.checkpoints.empty()))
    throw UsageError("--live puts one model into the page; leave out --with and --checkpoints");
  for (const auto& [flag, value] :
       {std::pair("--corpus-target", of.corpus_target), std::pair("--target-conllu", of.target_conllu),
        std::pair("--alignment", of.alignment)}) {
    if (!value.empty() && !of.has_corpus())
      throw UsageError(fmt::format("{} needs a corpus: give its sentences with --corpus or --conllu", flag));
  }
}

/// In a live page the reader changes heads, and the kernels are those of the module.
void check_live(const ViewFlags& flags, ChangedHeads& changed) {
  if (changed.sites() != nullptr)
    throw UsageError("--live: the reader changes heads on the page; leave out what changes them here");
  if (flags.model.precision != PrecisionChoice())
    throw UsageError("--live: the model in the page runs in float32; leave out --precision");
}

void run(ViewFlags& flags) {
  const ViewInputs& inputs = flags.inputs.settings;
  if (!inputs.checkpoints.empty() && flags.texts.empty() && flags.input.empty())
    flags.texts.push_back(
        std::exchange(flags.model.path, inputs.checkpoints));  // the only argument is the text
  const LiveOptions& live = flags.shown->live;
  check_inputs(inputs, live);
  std::vector<PageText> texts = texts_of(flags);
  std::optional<FilesCorpus> corpus;
  if (inputs.has_corpus()) corpus.emplace(corpus_files(inputs));
  ChangedHeads changed = changed_heads(flags.changes);
  if (live.live) check_live(flags, changed);
  ViewSettings settings = flags.shown.settings;
  settings.page.command = command_of(*flags.verb);
  settings.page.mode = !inputs.checkpoints.empty() ? PageMode::kTime
                       : !inputs.with.empty()      ? PageMode::kCompare
                                                   : PageMode::kOne;
  settings.run.model = flags.model.path;
  settings.run.corpus = corpus ? &*corpus : nullptr;
  settings.run.relations = !inputs.conllu.empty() || !inputs.target_conllu.empty();
  settings.run.alignment = !inputs.alignment.empty();
  settings.run.circuit = report_in(inputs.circuit);
  settings.run.retrieval = report_in(inputs.retrieval);
  settings.run.aligners = report_in(inputs.aligners);
  settings.run.sites = changed.sites();
  settings.run.remark = [](const std::string& line) { remark(line); };
  HeadsPage page(settings.page);
  const std::vector<RunToShow> runs = runs_of(flags);
  const auto of = [&](const RunToShow& shown) {
    return ModelFlags{.path = shown.path, .precision = flags.model.precision};
  };
  if (runs.size() > 1)
    translate_missing(load_model(of(inputs.checkpoints.empty() ? runs.front() : runs.back())), settings.run,
                      texts);
  for (const RunToShow& shown : runs) {
    const ScoredModel model =
        settings.run.importance || live.live ? load_scored(of(shown)) : ScoredModel(load_model(of(shown)));
    changed.check(model.folder());
    if (!settings.page.head.empty()) model.folder().model->heads_named(HeadPattern(settings.page.head));
    Progress progress("measured", "sentences");
    settings.run.name = shown.name;
    settings.run.progress = [&](int64_t done) { progress.show(done); };
    PageRun run = page_run(model, texts, settings.run);
    settings.run.circuit = settings.run.retrieval = settings.run.aligners = {};  // those of the first model
    run.update = shown.update;
    page.add_run(run, texts);
    if (live.live)
      page.add_live(live_elements(
          model, texts,
          {.name = shown.name, .weights = live.weights, .page = settings.page, .run = settings.run}));
  }
  const std::string html = page.html();
  write_text(flags.output, html);
  if (!quiet())
    fmt::print("{}\n{}: {:.1f} MB\n", page.title(), flags.output,
               static_cast<double>(html.size()) / (1 << 20));
  if (flags.open) open_file(flags.output);
}

}  // namespace

void add_view(Verb& app) {
  auto flags = std::make_shared<ViewFlags>();
  Verb* verb = flags->verb =
      app.add_subcommand("view", "See the heads of a model on a text: one page that opens anywhere");
  add_model(*verb, flags->model, "The model folder, a .gguf file, or demo")->required();
  verb->add_option("TEXT", flags->texts, "What the model reads; several: each is a text of its own");
  verb->add_option("-i,--input", flags->input, "Texts, one a line (gzip or not)");
  add_output_flag(*verb, "-o,--output", flags->output, "The page");
  verb->add_flag("--open", flags->open, "Open the page when it is written");
  flags->inputs.add(*verb);
  flags->shown.add(*verb);
  add_head_change_flags(*verb, flags->changes);
  name_values(*verb, "FILE", {"--input"});
  rare_flags(*verb, {"--input", "--mute"});
  verb->footer(
      "Example:\n"
      "  multihead view demo 'the small dog sees a cat .'\n"
      "  multihead view minilm 'The chef cooked the meal.' \\\n"
      "    --conllu en_ewt-ud-dev.conllu --walk 3");
  verb->callback([flags] {
    flags->inputs.take();
    flags->shown.take();
    run(*flags);
  });
}

}  // namespace mh::cli
