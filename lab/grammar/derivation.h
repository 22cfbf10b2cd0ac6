// Draws random sentences as trees (grammar_tree.h), which english() and german() turn into words.
#pragma once

#include <cstdint>
#include <memory>

#include "lab/grammar/grammar_tree.h"
#include "multihead/base/random.h"

namespace mh::grammar {

/// Whether training never shows this noun as the object of this verb: a function of the seed and the two
/// words.
bool is_held_out(uint64_t seed, const Verb& verb, const Noun& object);

struct Drawn {
  std::unique_ptr<Clause> clause;
  int depth = 0;          // how deep clauses are nested in the main one
  bool held_out = false;  // whether some verb has an object that is_held_out
};

/// A random main clause with clauses nested at most `depth` deep.
Drawn draw_sentence(Random& random, uint64_t seed, int depth);

}  // namespace mh::grammar
