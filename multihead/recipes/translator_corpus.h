// From text files to token ids: the tokenizer (learned, given or taken from a checkpoint) and the pairs that
// fit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "multihead/data/parallel_text.h"
#include "multihead/recipes/translator_settings.h"
#include "multihead/text/tokenizer.h"
#include "multihead/train/training_corpus.h"

namespace mh {

struct TranslatorTokenizers {
  Tokenizer source;
  std::optional<Tokenizer> own_target;  // only with separate vocabularies
  const Tokenizer& target() const { return own_target ? *own_target : source; }
};

/// Learned on `text`, or read from settings.tokenizer.
TranslatorTokenizers make_tokenizers(const TranslatorSettings& settings, const ParallelText& text);
/// Those of a model folder. Throws FileError when it has none.
TranslatorTokenizers read_tokenizers(const std::filesystem::path& folder);

/// The ids of the tokens a model needs. Throws UsageError when `tokenizer` lacks one or does not end what it
/// encodes.
struct SpecialIds {
  int32_t end, pad;
};
SpecialIds special_ids(const Tokenizer& tokenizer, const std::string& name);

/// A text as token ids, pairs with more than `max_length` tokens on a side left out; their line numbers in
/// `left_out`.
struct EncodedText {
  TrainingCorpus corpus;
  std::vector<int64_t> left_out;
};
EncodedText encode_text(const ParallelText& text, const TranslatorTokenizers& tokenizers, int64_t max_length);

}  // namespace mh
