// Turns a tree into the words of an English and of a German sentence.
#pragma once

#include <vector>

#include "lab/grammar/derivation.h"
#include "multihead/data/tree_bank.h"

namespace mh::grammar {

/// Parts of a node that are words of their own.
enum Part : int {
  kHead,  // the noun, the verb, the preposition
  kDeterminer,
  kAuxiliary,
  kNegation,
  kMiddle,
  kEdge,
  kMarker,  // "because", "that", "but", "and", the relative pronoun
  kComma,
  kStop,
  kModifiers,  // kModifiers + 2 i: the degree of adjective i; + 2 i + 1: the adjective
};

/// The meaning of a word: a node of the tree and a part of it. Words of the two languages with the same
/// meaning are aligned.
struct Meaning {
  const void* node = nullptr;  // null: aligned to nothing
  int part = 0;
  bool operator==(const Meaning&) const = default;
};

/// A sentence in one language: its words, whose heads are places in it, and the meaning of each.
struct Side {
  std::vector<Word> words;
  std::vector<Meaning> meanings;
};

/// Subject, verb, object; adverbs before the verb; "do" where "not" needs it.
Side english(const Clause& main);

/// The finite verb second in main clauses and last in subordinate ones; prefixes, participles and infinitives
/// at the clause's end; between them: pronouns, adverbs, dative, accusative, "nicht", place.
Side german(const Clause& main);

}  // namespace mh::grammar
