// Compares the heads of a translator with the trees of the built-in grammar: which head follows from a verb
// to its object, from an article to its noun, or to the word before. The demo and the studies print it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lab/grammar/grammar.h"
#include "multihead/heads/inspect_heads.h"

namespace mh {

/// Returns both sides of the sentences with their trees and alignments.
HeadsText heads_text(std::span<const GrammarSentence> sentences);

/// Returns the score that beats its best fixed offset by most; support 0 when there is none with this
/// relation and direction. Each attention has its own offset, since the decoder reads another language.
RelationScore best_head_for(std::span<const RelationScore> scores, std::string_view relation,
                            Direction direction);

inline constexpr const char* kPreviousWord = "previous";  // the name of this relation

/// Returns the head of encoder or decoder that reads the previous word most often. It is counted like a
/// relation, ignoring a word's weight on itself and on special tokens; punctuation is left out.
RelationScore previous_word_head(const ModelFolder& folder, HeadsText text);

}  // namespace mh
