// Tokenizers of a SentencePiece model whose pieces take the ids of a vocab.json; a piece that is not there is <unk>.
//
//   source.spm, target.spm, vocab.json, and target_vocab.json for a vocabulary of the target's own
//       OPUS's (Tiedemann and Thottingal 2020), which transformers' MarianTokenizer opens. A text gets </s> behind it.
//       ">>deu<<" at its start is a token: the language that a model of several is to write.
//   sentencepiece.bpe.model, vocab.json
//       M2M-100's, which M2M100Tokenizer opens. The codes of languages, "__en__", have the ids behind those of vocab.json, in the
//       order of a list of fairseq's. A text gets a code before it and </s> behind it.
#pragma once

#include "multihead/folders/folder_tokenizers.h"
#include "multihead/folders/tokenizer_settings.h"

namespace mh {

bool has_opus_tokenizers(const FolderSource& folder);
/// Throws FileError when one of the files is missing, FormatError on damaged ones, here and below.
FolderTokenizers read_opus_tokenizers(const FolderSource& folder);

bool has_m2m100_tokenizer(const FolderSource& folder);
FolderTokenizers read_m2m100_tokenizer(const FolderSource& folder);

}  // namespace mh
