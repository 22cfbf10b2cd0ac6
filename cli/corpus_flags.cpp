#include "cli/corpus_flags.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "cli/common.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "multihead/base/error.h"

namespace mh::cli {
namespace {

bool is_pipe(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_fifo(path, none);
}

}  // namespace

CorpusFiles files_of(const CorpusFlags& flags) {
  check_alignment(flags.alignment, flags.target, flags.target_conllu);
  return {.input = flags.input,
          .target = flags.target,
          .pairs = flags.pairs,
          .conllu = flags.conllu,
          .target_conllu = flags.target_conllu,
          .alignment = flags.alignment,
          .limits = text_limits()};
}

void check_alignment(const std::string& alignment, const std::string& target,
                     const std::string& target_conllu, std::string_view target_flag) {
  if (alignment.empty() || !target.empty() || !target_conllu.empty()) return;
  throw UsageError(fmt::format(
      "--alignment needs the translations that it aligns: give {} or --target-conllu", target_flag));
}

CorpusFiles readable_again(CorpusFiles files) {
  files.limits = text_limits();
  if (files.input.empty() ? files.conllu.empty() : is_pipe(files.input)) {
    files.lines = read_text(files.input);
    files.name = name_of(files.input);
    files.input.clear();
  }
  for (const std::string& path :
       {files.target, files.pairs, files.conllu, files.target_conllu, files.alignment}) {
    if (is_pipe(path)) throw UsageError(path + " is a pipe, and may be read twice; write it to a file first");
  }
  return files;
}

void add_corpus_flags(Verb& verb, CorpusFlags& flags, const CorpusVerb& takes) {
  verb.add_option("-i,--input", flags.input, "Sentences, one a line (gzip or not); without: standard input")
      ->type_name("FILE");
  verb.add_option("--target", flags.target,
                  "Their translations, line by line; without: the model's greedy translations")
      ->type_name("FILE");
  if (takes.pairs)
    verb.add_option("--input-pair", flags.pairs,
                    "Second texts of --input, line by line, which an encoder such as BERT reads with it")
        ->type_name("FILE");
  verb.add_option("--conllu", flags.conllu,
                  takes.trees ? "Dependency trees of the sentences (CoNLL-U); their words are the text "
                                "unless --input is given"
                              : "Take the sentences, and their words, from CoNLL-U")
      ->type_name("FILE");
  if (takes.trees)
    verb.add_option("--target-conllu", flags.target_conllu, "Dependency trees of the translations (CoNLL-U)")
        ->type_name("FILE");
  if (takes.alignment)
    verb.add_option("--alignment", flags.alignment, "Word alignments (Pharaoh format), one line a sentence")
        ->type_name("FILE");
  add_head_change_flags(verb, flags.changes);
  add_limit_flags(verb);
}

CorpusRun::CorpusRun(ScoredModel model, const CorpusFlags& flags)
    : model_(std::move(model)),
      changed_(changed_heads(flags.changes)),
      corpus_(readable_again(files_of(flags))) {
  changed_.check(folder());
}

void CorpusRun::attach(ObserveHeadsOptions& options) {
  options.observe.sites = changed_.sites();
  options.observe.progress = [this](int64_t done) { progress_.show(done); };
  options.remark = [](const std::string& line) { remark(line); };
}

std::string what_was_read(const CorpusRead& read) {
  std::string text = counted(read.sentences, "sentence");
  if (read.targets == TargetsRead::kGreedy) text += ", targets by greedy search";
  if (read.targets == TargetsRead::kGiven) text += ", targets as given";
  return text + "\n";
}

}  // namespace mh::cli
