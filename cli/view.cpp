// multihead view: the heads of a model on a text as one HTML file.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/head_changes.h"
#include "cli/heads/corpus_flags.h"
#include "cli/load_model.h"
#include "cli/open_file.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/shell_words.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/folders/checkpoint_names.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/corpus/corpus_files.h"
#include "multihead/heads/reports/page/heads_page.h"
#include "multihead/heads/reports/page/page_run.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/tasks/translate_text.h"

namespace mh::cli {
namespace {

struct ViewFlags {
  std::string model, with, checkpoints, input, output = "heads.html", head, walk;
  std::vector<std::string> texts, targets;
  std::string corpus, corpus_target, conllu, target_conllu, alignment;
  HeadChangeFlags changes = {};
  int64_t most_megabytes = 32;
  bool no_importance = false, open = false;

  bool has_corpus() const { return !corpus.empty() || !conllu.empty(); }
};

std::string command_of(const ViewFlags& flags) {
  std::string command = "multihead view " + shell_word(flags.model);
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) command += fmt::format(" {} {}", flag, shell_word(value));
  };
  for (const std::string& text : flags.texts) command += " " + shell_word(text);
  for (const std::string& target : flags.targets) add("--target", target);
  add("-i", flags.input);
  add("--with", flags.with);
  add("--checkpoints", flags.checkpoints);
  add("--corpus", flags.corpus);
  add("--corpus-target", flags.corpus_target);
  add("--conllu", flags.conllu);
  add("--target-conllu", flags.target_conllu);
  add("--alignment", flags.alignment);
  add("--head", flags.head);
  add("--walk", flags.walk);
  for (const std::string& heads : flags.changes.mute) add("--mute", heads);
  for (const std::string& gate : flags.changes.gate) add("--gate", gate);
  for (const std::string& rule : flags.changes.replace) add("--replace", rule);
  if (flags.no_importance) command += " --no-importance";
  return command;
}

std::vector<PageText> texts_of(const ViewFlags& flags) {
  std::vector<std::string> sources = flags.texts;
  if (!flags.input.empty()) {
    for (std::string& line : read_text(flags.input)) sources.push_back(std::move(line));
  }
  if (sources.empty()) throw UsageError("give a text to look at, or a file of them with -i");
  if (!flags.targets.empty() && flags.targets.size() != sources.size())
    throw UsageError(fmt::format("{} and {}; give --target once for each text",
                                 counted(std::ssize(sources), "text"),
                                 counted(std::ssize(flags.targets), "translation")));
  std::vector<PageText> texts;
  for (size_t i = 0; i < sources.size(); ++i) {
    check_utf8(sources[i], "the text");
    texts.push_back({.source = sources[i], .target = flags.targets.empty() ? "" : flags.targets[i]});
    check_utf8(texts.back().target, "--target");
  }
  return texts;
}

CorpusFiles corpus_files(const ViewFlags& flags) {
  check_alignment(flags.alignment, flags.corpus_target, flags.target_conllu, "--corpus-target");
  return readable_again({.input = flags.corpus,
                         .target = flags.corpus_target,
                         .conllu = flags.conllu,
                         .target_conllu = flags.target_conllu,
                         .alignment = flags.alignment});
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
void translate_missing(const ModelFolder& folder, SiteValues* changed, std::vector<PageText>& texts) {
  if (!translates(folder) || !texts.front().target.empty()) return;
  std::vector<std::string> sources;
  for (const PageText& text : texts) sources.push_back(text.source);
  TranslateOptions options{.sites = changed};
  options.search.beam_size = 1;
  const std::vector<std::string> translations = translate_text(folder, sources, options);
  for (size_t i = 0; i < texts.size(); ++i) texts[i].target = translations[i];
}

std::vector<RunToShow> runs_of(const ViewFlags& flags) {
  std::vector<RunToShow> runs;
  if (!flags.checkpoints.empty()) {
    const std::vector<int64_t> updates = checkpoint_updates(flags.checkpoints);
    if (updates.empty())
      throw FileError(flags.checkpoints + " has no checkpoints; train with --keep to have some");
    for (const int64_t update : updates)
      runs.push_back(
          {fmt::format("update {}", update), checkpoint_of(flags.checkpoints, update).string(), update});
    return runs;
  }
  runs.push_back({name_of_model(flags.model), flags.model});
  if (!flags.with.empty()) runs.push_back({name_of_model(flags.with), flags.with});
  return runs;
}

void run(ViewFlags& flags) {
  if (!flags.checkpoints.empty() && flags.texts.empty() && flags.input.empty())
    flags.texts.push_back(std::exchange(flags.model, flags.checkpoints));  // the only argument is the text
  if (!flags.with.empty() && !flags.checkpoints.empty())
    throw UsageError("--with compares two models and --checkpoints follows one; give one of them");
  for (const auto& [flag, value] :
       {std::pair("--corpus-target", flags.corpus_target), std::pair("--target-conllu", flags.target_conllu),
        std::pair("--alignment", flags.alignment)}) {
    if (!value.empty() && !flags.has_corpus())
      throw UsageError(fmt::format("{} needs a corpus: give its sentences with --corpus or --conllu", flag));
  }
  std::vector<PageText> texts = texts_of(flags);
  std::optional<FilesCorpus> corpus;
  if (flags.has_corpus()) corpus.emplace(corpus_files(flags));
  SiteValues changed = changed_heads(flags.changes);
  HeadsPage page({.command = command_of(flags),
                  .mode = !flags.checkpoints.empty() ? PageMode::kTime
                          : !flags.with.empty()      ? PageMode::kCompare
                                                     : PageMode::kOne,
                  .head = flags.head,
                  .most_bytes = static_cast<size_t>(flags.most_megabytes) << 20});
  SiteValues* const sites = changed.empty() ? nullptr : &changed;
  const std::vector<RunToShow> runs = runs_of(flags);
  if (runs.size() > 1)
    translate_missing(load_model(flags.checkpoints.empty() ? runs.front().path : runs.back().path), sites,
                      texts);
  for (const RunToShow& shown : runs) {
    const ScoredModel model =
        flags.no_importance ? ScoredModel(load_model(shown.path)) : load_scored(shown.path);
    model.folder().model->check(changed);
    if (!flags.head.empty()) model.folder().model->heads_named(HeadPattern(flags.head));
    Progress progress("measured", "sentences");
    PageRun run = page_run(model, texts,
                           {.name = shown.name,
                            .model = flags.model,
                            .corpus = corpus ? &*corpus : nullptr,
                            .relations = !flags.conllu.empty() || !flags.target_conllu.empty(),
                            .alignment = !flags.alignment.empty(),
                            .importance = !flags.no_importance,
                            .walk = flags.walk,
                            .sites = sites,
                            .remark = [](const std::string& line) { remark(line); },
                            .progress = [&](int64_t done) { progress.show(done); }});
    run.update = shown.update;
    page.add_run(run, texts);
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
  Verb* verb = app.add_subcommand("view", "See the heads of a model on a text: one page that opens anywhere");
  add_model(*verb, flags->model, "The model folder, a .gguf file, or demo")->required();
  verb->add_option("TEXT", flags->texts, "What the model reads; several: each is a text of its own");
  verb->add_option("--target", flags->targets,
                   "A translation, for each text in turn; without: the model's greedy translations")
      ->again();
  verb->add_option("-i,--input", flags->input, "Texts, one a line (gzip or not)");
  add_output_flag(*verb, "-o,--output", flags->output, "The page");
  verb->add_option("--with", flags->with, "A second model, beside it on the same texts");
  verb->add_option("--checkpoints", flags->checkpoints,
                   "Show the checkpoints of the training in this folder instead, through time");
  verb->add_option("--corpus", flags->corpus, "Sentences, one a line: what heads do is measured on them");
  verb->add_option("--corpus-target", flags->corpus_target, "Their translations, line by line");
  verb->add_option("--conllu", flags->conllu, "Dependency trees (CoNLL-U) of --corpus, or the corpus itself");
  verb->add_option("--target-conllu", flags->target_conllu, "Dependency trees of the translations");
  verb->add_option("--alignment", flags->alignment, "Word alignments of the corpus (Pharaoh format)");
  verb->add_option("--head", flags->head, "Open at this head; without: at the one with the best evidence");
  verb->add_option(
      "--walk", flags->walk,
      "An attention, e.g. encoder.0.self_attention, or the number of a layer: add a walk through it, "
      "step by step, on the first text");
  add_head_change_flags(*verb, flags->changes);
  add_number(*verb, "--max-size", flags->most_megabytes, {.low = 1, .high = 1024}, "Largest page, in MB");
  verb->add_flag("--no-importance", flags->no_importance,
                 "Skip importance and attribution, which take longest");
  verb->add_flag("--open", flags->open, "Open the page when it is written");
  name_values(*verb, "TEXT", {"TEXT", "--target"});
  name_values(*verb, "FILE",
              {"--input", "--corpus", "--corpus-target", "--conllu", "--target-conllu", "--alignment"});
  name_values(*verb, "DIR", {"--with", "--checkpoints"});
  name_values(*verb, "HEAD", {"--head"});
  name_values(*verb, "ATTENTION", {"--walk"});
  common_flags(*verb, {"--target", "--output", "--with", "--conllu", "--head", "--walk", "--open"});
  verb->footer(
      "Example:\n"
      "  multihead view demo 'the small dog sees a cat .'\n"
      "  multihead view minilm 'The chef cooked the meal.' \\\n"
      "    --conllu en_ewt-ud-dev.conllu --walk 3");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
