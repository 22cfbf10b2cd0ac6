// Turns a tree into the words of an English and of a German sentence.
#pragma once

#include "lab/grammar/grammar_tree.h"
#include "lab/grammar/sentence_builder.h"

namespace mh::grammar {

/// Subject, verb, object; adverbs before the verb; "do" where "not" needs it.
void english(const Clause& main, SentenceBuilder& out);

/// The finite verb second in main clauses and last in subordinate ones; prefixes, participles and infinitives
/// at the clause's end; between them: pronouns, adverbs, dative, accusative, "nicht", place.
void german(const Clause& main, SentenceBuilder& out);

}  // namespace mh::grammar
