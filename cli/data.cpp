// multihead data grammar: writes the built-in parallel corpus with its trees and alignments.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/options.h"
#include "cli/verb.h"
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
  to_stderr(fmt::format("{}: {}, {} valid, {} test, {} compositional (seed {})\n", printable_line(flags.out),
                        counted(std::ssize(corpus.train), "training pair"), corpus.valid.size(),
                        corpus.test.size(), corpus.compositional.size(), flags.options.seed));
}

}  // namespace

void add_data(Verb& app) {
  Verb& data = *app.add_subcommand("data", "Make a data set");
  data.footer("Example:\n  multihead data grammar --out corpus");

  Verb& grammar = *data.add_subcommand(
      "grammar",
      "Write the built-in English-German corpus: text, trees (CoNLL-U) and word alignments (Pharaoh)");
  auto flags = std::make_shared<GrammarFlags>();
  GrammarOptions& options = flags->options;
  grammar.add_option("--out", flags->out, "Folder to write")->required();
  add_number(grammar, "--seed", options.seed, {}, "Seed of the random sentences");
  add_number(grammar, "--train", options.train, kGrammarPairs, "Sentence pairs for training");
  add_number(grammar, "--valid", options.valid, kGrammarPairs, "Sentence pairs for validation");
  add_number(grammar, "--test", options.test, kGrammarPairs, "Sentence pairs for testing");
  add_number(grammar, "--compositional", options.compositional, kGrammarPairs,
             "Test pairs of a kind not in training: half with unseen verb-object pairs, half nested deeper");
  add_number(grammar, "--depth", options.depth, kGrammarDepths,
             "How deep clauses nest; one deeper in the compositional pairs");
  add_number(grammar, "--max-words", options.max_words, kGrammarWords,
             "Words in the longest sentence, punctuation included");
  name_values(grammar, "DIR", {"--out"});
  grammar.footer(
      "Example:\n  multihead data grammar --out corpus --train 20000 --seed 7\n  head -3 corpus/test.en");
  grammar.callback([flags] { run_grammar(*flags); });
}

}  // namespace mh::cli
