// The built-in data: English sentences with German translations, made by a synchronous grammar with some
// 300 lemmas. Every sentence comes with its dependency trees on both sides and its word alignment, so heads
// can be compared with them. The German is a function of the English, so a translation can be checked by
// exact match.
//
// A sentence is a line of words and punctuation with spaces between them: "today the man sees the cat ." It
// does not begin with a capital, so that a word looks the same in every place.
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

/// Why a sentence is in the compositional part, which tests combinations that training never shows.
enum class Novelty {
  kNone,
  kVerbObject,  // a verb with an object that it never has in the other parts, though both words occur there
  kDepth        // clauses nested one level deeper than in the other parts
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
  int depth = 1;       // how deep clauses are nested in the main clause, except in the compositional part
  int max_words = 20;  // on either side, punctuation counted
};

/// What these may be; of the number of pairs in each part, too.
inline constexpr Rule<int64_t> kGrammarPairs{.low = 0, .high = 2'000'000};
inline constexpr Rule<int> kGrammarDepths{.low = 0, .high = 5};
inline constexpr Rule<int> kGrammarWords{.low = 5, .high = 200};

struct GrammarCorpus {
  std::vector<GrammarSentence> train, valid, test, compositional;
};

/// Makes the corpus. No sentence occurs twice on either side. The other parts do not depend on the size of
/// `train`. Throws UsageError on a setting out of range, or when the grammar has fewer sentences than were
/// asked for.
GrammarCorpus make_grammar_corpus(const GrammarOptions& options);

/// Returns the plain text of a part.
ParallelText parallel_text(std::span<const GrammarSentence> sentences);

/// Throws FileError when write_grammar_corpus() could not write `folder`: before the work.
void check_grammar_folder(const std::filesystem::path& folder);

/// Writes PART.en, PART.de, PART.en.conllu, PART.de.conllu and PART.align for the parts train, valid, test
/// and compositional. The folder appears as a whole and replaces an older one of this kind. Throws
/// FileError, also when the folder has other files.
void write_grammar_corpus(const GrammarCorpus& corpus, const std::filesystem::path& folder);

}  // namespace mh
