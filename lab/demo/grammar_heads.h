// The sentences of the built-in grammar as a text whose heads are looked at. The demo and the studies use it.
#pragma once

#include <span>

#include "lab/grammar/grammar.h"
#include "multihead/heads/measures/inspect_heads.h"

namespace mh {

/// Returns both sides of the sentences with their trees and alignments.
HeadsText heads_text(std::span<const GrammarSentence> sentences);

/// The name of a relation in whose trees each word hangs on the one before it.
inline constexpr const char* kPreviousWord = "previous";

}  // namespace mh
