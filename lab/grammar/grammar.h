// The built-in data: English sentences with their German translations from a synchronous grammar of some 300
// lemmas. It knows its own gold: the tree of dependencies on both sides and the word alignment. The German is
// a function of the English, so exact match measures a translator. Text is written without capitals at the
// beginning of a sentence (a word looks the same wherever it stands), every token between spaces.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "multihead/data/alignment.h"
#include "multihead/data/parallel_text.h"
#include "multihead/data/tree_bank.h"
#include "multihead/io/config.h"

namespace mh {

/// Why a sentence is in the compositional part.
enum class Novelty {
  kNone,
  kVerbObject,  // a verb with an object that it never has in the other parts; both words are known
  kDepth        // clauses nested one deeper than anywhere in the other parts
};

struct GrammarSentence {
  std::vector<Word> source, target;
  Alignment alignment;  // sorted
  Novelty novelty = Novelty::kNone;
};

struct GrammarOptions {
  uint64_t seed = 1;
  int64_t train = 30000;  // pairs
  int64_t valid = 500;
  int64_t test = 1000;
  int64_t compositional = 1000;  // first half verb_object, second half depth
  int depth = 1;       // how deep clauses nest in the main clause, outside of the compositional part
  int max_words = 20;  // on either side, punctuation counted
};

/// What these may be; of the number of pairs in each part, too.
inline constexpr Rule<int64_t> kGrammarPairs{.low = 0, .high = 2'000'000};
inline constexpr Rule<int> kGrammarDepths{.low = 0, .high = 5};
inline constexpr Rule<int> kGrammarWords{.low = 5, .high = 200};

struct GrammarCorpus {
  std::vector<GrammarSentence> train, valid, test, compositional;
};

/// No sentence of either side is twice in the corpus. The parts do not depend on the size of `train`.
/// Throws UsageError on a setting out of range, or when the grammar has not as many sentences as asked for.
GrammarCorpus make_grammar_corpus(const GrammarOptions& options);

/// The plain text of a part.
ParallelText parallel_text(std::span<const GrammarSentence> sentences);

/// Throws FileError when write_grammar_corpus() could not write `folder`: before the work.
void check_grammar_folder(const std::filesystem::path& folder);

/// Writes PART.en, PART.de, PART.en.conllu, PART.de.conllu and PART.align for the parts train, valid, test
/// and compositional: the folder appears as a whole, in place of one that was written so before. Throws
/// FileError, also when the folder holds anything else.
void write_grammar_corpus(const GrammarCorpus& corpus, const std::filesystem::path& folder);

}  // namespace mh
