// Turns the text files of a training into token ids: makes or reads the tokenizers, and leaves out pairs
// that are too long.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "multihead/data/parallel_text.h"
#include "multihead/text/tokenizer.h"
#include "multihead/train/training_corpus.h"
#include "multihead/train/translator/translator_settings.h"

namespace mh {

struct TranslatorTokenizers {
  Tokenizer source;
  std::optional<Tokenizer> own_target;  // only with separate vocabularies
  const Tokenizer& target() const { return own_target ? *own_target : source; }
};

/// Returns tokenizers learned on `text`, or the one in settings.tokenizer.
TranslatorTokenizers make_tokenizers(const TranslatorSettings& settings, const ParallelText& text);

/// The ids of the special tokens that a model needs. special_ids() throws UsageError when `tokenizer` lacks
/// one or does not append the end token.
struct SpecialIds {
  int32_t end, pad;
};
SpecialIds special_ids(const Tokenizer& tokenizer, const std::string& name);

/// A text as token ids. Pairs with more than `max_length` tokens on a side are left out; `left_out` has
/// their line numbers.
struct EncodedText {
  TrainingCorpus corpus;
  std::vector<int64_t> left_out;
};
EncodedText encode_text(const ParallelText& text, const TranslatorTokenizers& tokenizers, int64_t max_length);

}  // namespace mh
