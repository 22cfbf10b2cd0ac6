// What the heads of a translator of the grammar's language do, held against the grammar's own trees: from a
// verb to its object, from an article to its noun, to the word before. The demo and the studies print it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lab/grammar/grammar.h"
#include "multihead/recipes/inspect_heads.h"

namespace mh {

/// Both sides of the sentences with their trees and alignments.
HeadsText heads_text(std::span<const GrammarSentence> sentences);

/// Of these scores the one that beats its best fixed offset by most; support 0 when there is none of that
/// relation and direction. The offset is each attention's own: the decoder's word order is another.
RelationScore best_head_for(std::span<const RelationScore> scores, std::string_view relation,
                            Direction direction);

inline constexpr const char* kPreviousWord = "previous";  // as a relation

/// The head of encoder or decoder that reads the word before most often. Counted as relations are, without a
/// word's own weight and that on special tokens; punctuation is not asked.
RelationScore previous_word_head(const ModelFolder& folder, HeadsText text);

}  // namespace mh
