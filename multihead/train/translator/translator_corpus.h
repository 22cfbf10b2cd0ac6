// Turns the text files of a training into token ids: makes or reads the tokenizers, and leaves out pairs
// that are too long.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "multihead/data/parallel_text.h"
#include "multihead/text/tokenizer.h"
#include "multihead/train/training_corpus.h"
#include "multihead/train/translator/pair_frame.h"
#include "multihead/train/translator/translator_settings.h"

namespace mh {

struct TranslatorTokenizers {
  Tokenizer source;
  std::optional<Tokenizer> own_target = {};  // only with separate vocabularies
  PairFrame frame = {};
  /// The small files of the folder that they were read from, by name; empty: they were read from none.
  std::map<std::string, std::string, std::less<>> files = {};
  const Tokenizer& target() const { return own_target ? *own_target : source; }
};

/// Returns those of a folder whose model is trained further. kept: its files (kept_folder.h). Throws as frame_of().
TranslatorTokenizers tokenizers_of(const ModelFolder& folder, const ModelFolder& kept,
                                   const PairTexts& texts);

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
