#include "multihead/heads/sites/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

/// The bytes of the white space that the text begins with.
size_t space_at(std::string_view text) {
  size_t end = 0;
  return is_whitespace(next_character(text, end)) ? end : 0;
}

int32_t characters_in(std::string_view text) {
  return static_cast<int32_t>(std::count_if(text.begin(), text.end(), begins_character));
}

}  // namespace

std::vector<Word> words_in(std::string_view text) {
  std::vector<Word> words;
  bool goes_on = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t character = next_character(text, at);
    const bool joins = is_word(character);
    if (!is_whitespace(character)) {
      if (!(joins && goes_on)) words.emplace_back();
      words.back().form += text.substr(begin, at - begin);
    }
    goes_on = joins;
  }
  return words;
}

WordOfToken words_of_tokens(std::span<const std::pair<int32_t, int32_t>> offsets, std::string_view text,
                            std::span<const Word> words, std::string_view where) {
  std::vector<int32_t> word_at;  // for each character of the text
  size_t word = 0;
  while (!text.empty()) {
    const bool is_word =
        word < words.size() && !words[word].form.empty() && text.starts_with(words[word].form);
    if (const size_t space = is_word ? 0 : space_at(text)) {  // a word may be or have white space: "10 000"
      word_at.push_back(-1);
      text.remove_prefix(space);
      continue;
    }
    if (!is_word) {
      throw FormatError(fmt::format("{}: expected the text to go on with '{}', the tree's word {}, got '{}'",
                                    where, word == words.size() ? "" : words[word].form, word + 1,
                                    text.substr(0, text.find(' '))));
    }
    const std::string& form = words[word].form;
    word_at.insert(word_at.end(), static_cast<size_t>(characters_in(form)), static_cast<int32_t>(word++));
    text.remove_prefix(form.size());
  }
  if (word != words.size()) {
    throw FormatError(
        fmt::format("{}: the text ends before '{}', the tree's word {}", where, words[word].form, word + 1));
  }

  WordOfToken of_token;
  for (const auto& [begin, end] : offsets) {
    int32_t found = -1;
    for (int32_t at = std::max(begin, 0); at < end && at < static_cast<int32_t>(word_at.size()); ++at) {
      if (word_at[static_cast<size_t>(at)] >= 0) found = word_at[static_cast<size_t>(at)];
    }
    of_token.push_back(found);
  }
  return of_token;
}

int64_t words_read(std::span<const int32_t> word_of_token) {
  int64_t read = 0;
  for (const int32_t word : word_of_token) read = std::max<int64_t>(read, word + 1);
  return read;
}

Tensor merge_to_words(ConstMatrixView weights, std::span<const int32_t> word_of_query, int64_t query_words,
                      std::span<const int32_t> word_of_key, int64_t key_words) {
  MH_ASSERT(static_cast<int64_t>(word_of_query.size()) == weights.rows);
  MH_ASSERT(static_cast<int64_t>(word_of_key.size()) == weights.cols);
  Tensor merged(query_words, key_words);
  std::vector<int32_t> pieces(static_cast<size_t>(query_words));
  for (int64_t i = 0; i < weights.rows; ++i) {
    const int32_t query = word_of_query[static_cast<size_t>(i)];
    if (query < 0) continue;
    ++pieces[static_cast<size_t>(query)];
    for (int64_t j = 0; j < weights.cols; ++j) {
      const int32_t key = word_of_key[static_cast<size_t>(j)];
      if (key >= 0) merged(query, key) += weights(i, j);
    }
  }
  for (int64_t i = 0; i < query_words; ++i) {
    const auto count = static_cast<float>(std::max(pieces[static_cast<size_t>(i)], 1));
    for (int64_t j = 0; j < key_words; ++j) merged(i, j) /= count;
  }
  return merged;
}

}  // namespace mh
