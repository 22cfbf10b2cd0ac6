// multihead data grammar: writes the built-in parallel corpus with its trees and alignments.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "lab/grammar/grammar.h"

namespace mh::cli {
namespace {

struct GrammarFlags {
  std::string out;
  GrammarOptions options;
};

void run_grammar(const GrammarFlags& flags) {
  check_grammar_folder(flags.out);
  const GrammarCorpus corpus = make_grammar_corpus(flags.options);
  write_grammar_corpus(corpus, flags.out);
  if (quiet()) return;
  to_stderr(fmt::format("{}: {} training pairs, {} valid, {} test, {} compositional (seed {})\n", flags.out,
                        corpus.train.size(), corpus.valid.size(), corpus.test.size(),
                        corpus.compositional.size(), flags.options.seed));
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App& data = *app.add_subcommand("data", "Make data sets");
  data.require_subcommand(1);
  data.footer("Example:\n  multihead data grammar --out corpus");

  CLI::App& grammar = *data.add_subcommand(
      "grammar",
      "Write the built-in English-German corpus: text, trees (CoNLL-U) and word alignments (Pharaoh)");
  auto flags = std::make_shared<GrammarFlags>();
  GrammarOptions& options = flags->options;
  grammar.add_option("--out", flags->out, "Folder to write, as a whole")->required();
  add_number(grammar, "--seed", options.seed, {}, "Another seed makes another corpus");
  add_number(grammar, "--train", options.train, kGrammarPairs, "Training pairs");
  add_number(grammar, "--valid", options.valid, kGrammarPairs, "Validation pairs");
  add_number(grammar, "--test", options.test, kGrammarPairs, "Test pairs");
  add_number(grammar, "--compositional", options.compositional, kGrammarPairs,
             "Test pairs of a kind not in training: half with unseen verb-object pairs, half nested deeper");
  add_number(grammar, "--depth", options.depth, kGrammarDepths,
             "How deep clauses nest (compositional: one deeper)");
  add_number(grammar, "--max-words", options.max_words, kGrammarWords,
             "Longest sentence, punctuation counted");
  grammar.footer(
      "Example:\n  multihead data grammar --out corpus --train 20000 --seed 7\n  head -3 corpus/test.en");
  grammar.callback([flags] { run_grammar(*flags); });
}

}  // namespace mh::cli
