// Needles and the filler as a model's tokens, and the texts that are made of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/retrieval/heads_retrieval.h"

namespace mh {

/// A text with one needle, in tokens.
struct NeedleText {
  std::vector<int32_t>
      text;           // with the special tokens before it, the filler and the needle; without the question
  int32_t place = 0;  // of the needle's first token
};

class NeedleTexts {
 public:
  struct Needle {
    std::vector<int32_t> sentence, question, answer;
    std::vector<int32_t> words = {};  // the distinct tokens of the answer
  };

  /// most: tokens of the filler that are needed. Throws as heads_retrieval() does.
  NeedleTexts(const ModelFolder& folder, const RetrievalTexts& texts, int32_t most);

  const std::vector<Needle>& needles() const { return needles_; }
  /// The special tokens with which the tokenizer begins a text.
  const std::vector<int32_t>& begin() const { return begin_; }
  /// [most]
  const std::vector<int32_t>& filler() const { return filler_; }
  /// How many of these come before the filler begins again.
  int32_t filler_once() const { return filler_once_; }
  /// How many tokens the longest needle, its question and special tokens take.
  int32_t least_length() const;
  /// Of so many tokens, the question among them. REQUIRES: length >= least_length().
  NeedleText text(size_t needle, int32_t length, double depth) const;

 private:
  void read_filler(const Tokenizer& tokenizer, const std::string& filler, size_t most);
  void read_needle(const Tokenizer& tokenizer, size_t number, const RetrievalNeedle& needle);
  size_t insertion_place(size_t room, double depth) const;

  std::vector<int32_t> begin_, filler_;
  int32_t filler_once_ = 0;
  std::vector<char> ends_;  // of each token of the filler: whether a sentence ends with it
  std::vector<Needle> needles_;
};

}  // namespace mh
