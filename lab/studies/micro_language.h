// A language small enough to learn in seconds, for the quick studies: a dozen nouns, German gender, case,
// word order.
#pragma once

#include <cstdint>

#include "lab/grammar/grammar.h"

namespace mh {

/// Like make_grammar_corpus, from 33 words: "today an old man sees the cat ." -> "heute sieht ein alter Mann
/// die Katze ." Articles and adjectives agree with their noun's gender and case, the verb comes second or,
/// after "dass", last. Trees of both sides are given, alignments are not. No sentence is twice in the corpus.
GrammarCorpus make_micro_corpus(uint64_t seed, int64_t train, int64_t valid, int64_t test);

}  // namespace mh
