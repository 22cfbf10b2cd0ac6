// Merges attention weights between tokens into weights between words, since trees and alignments are given
// for words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/matrix_view.h"
#include "multihead/data/tree_bank.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// For each token of a sentence the number of the word that it is a part of; -1 for a token that is part of
/// no word, such as the end token.
using WordOfToken = std::vector<int32_t>;

/// The words of a text as a reader counts them: runs of letters, digits and what joins them (Unicode's word characters); every other
/// character but white space is a word of its own. Only the forms are set.
std::vector<Word> words_in(std::string_view text);

/// Uses the tokens' offsets (Encoding::offsets) in `text`, which consists of the words with any or no white space between them.
/// A token belongs to the word of its last character that is not a space. Throws FormatError that starts
/// with `where` when the words do not make up the text.
WordOfToken words_of_tokens(std::span<const std::pair<int32_t, int32_t>> offsets, std::string_view text,
                            std::span<const Word> words, std::string_view where);

/// How many words a model reads of a sentence: behind them none has a token, where the text was cut.
int64_t words_read(std::span<const int32_t> word_of_token);

/// Returns the weights between words, [query_words, key_words]: the sum over the tokens of the key word,
/// the mean over the tokens of the query word (Clark et al. 2019). Words without tokens get 0. REQUIRES:
/// word_of_query and word_of_key have an entry for each row and column.
Tensor merge_to_words(ConstMatrixView weights, std::span<const int32_t> word_of_query, int64_t query_words,
                      std::span<const int32_t> word_of_key, int64_t key_words);

}  // namespace mh
