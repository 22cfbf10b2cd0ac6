// Reads SentencePiece models (Kudo and Richardson 2018), such as source.spm and target.spm of OPUS-MT.
//
//   TokenizerParts parts = read_sentencepiece_model(read_file(path), path);
//   use_vocabulary(parts, vocabulary, "<unk>");  // Marian's folders: the ids of vocab.json
//   const Tokenizer tokenizer(std::move(parts));
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Returns the parts of a tokenizer that gives the ids and texts of the SentencePiece library: Unigram or
/// BPE, the normalizer with its character map, user-defined pieces, bytes for unknown characters. Control
/// pieces ("</s>") are special tokens that are not looked for in the text; nothing is put around it. Offsets
/// are the characters that each piece comes from. Throws FormatError, one line that starts with `name`, on
/// what is not such a model, or is one of words or characters.
///
/// Such a tokenizer cannot be written as tokenizer.json (Tokenizer::to_json throws UsageError): that format
/// takes the character map another way.
TokenizerParts read_sentencepiece_model(std::string_view bytes, std::string_view name);

/// Which pieces are made earlier: all by their ids, or the normal ones by their scores.
enum class MergeOrder { kByIds, kByScores };

/// Returns the same pieces as byte-pair encoding with a list of merges (TokenModel::Kind::kBpe), as transformers
/// takes them: control and user-defined pieces are found in texts, and there is no other step. Throws FormatError,
/// one line without a file's name, on a Unigram model.
TokenizerParts merged_pieces(const TokenizerParts& parts, MergeOrder order);

/// Gives the tokens the ids of `vocabulary` in place of the model's. A piece that is not there has the id of
/// `unknown`, and so has a run of unknown characters, unless the vocabulary has the run itself (as
/// MarianTokenizer does). The special tokens of the model go; add those of the folder to
/// `parts.added_tokens`. Throws FormatError when the vocabulary lacks `unknown`.
void use_vocabulary(TokenizerParts& parts, std::vector<std::pair<std::string, int32_t>> vocabulary,
                    std::string_view unknown);

}  // namespace mh
