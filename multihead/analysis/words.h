// Tokens are pieces; trees and alignments speak of words. This is how weights get from one to the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/matrix_view.h"
#include "multihead/data/tree_bank.h"
#include "multihead/tensor/tensor.h"
#include "multihead/text/tokenizer.h"

namespace mh {

/// For each token of a sentence the number of the word that it is a piece of; -1: of none, such as the end
/// token.
using WordOfToken = std::vector<int32_t>;

/// By the tokens' offsets in `text`, which spells the words with any white space between them (none is
/// allowed too). A token belongs to the word of its last character that is no space. Throws FormatError that
/// starts with `where` when the words do not spell the text.
WordOfToken words_of_tokens(const Encoding& encoding, std::string_view text, std::span<const Word> words,
                            std::string_view where);

/// Weights between words: the sum over the pieces of the key, the mean over the pieces of the query (Clark et
/// al. 2019). [query_words, key_words]; words without pieces are zero. REQUIRES: an entry for each row and
/// column.
Tensor merge_to_words(ConstMatrixView weights, std::span<const int32_t> word_of_query, int64_t query_words,
                      std::span<const int32_t> word_of_key, int64_t key_words);

}  // namespace mh
