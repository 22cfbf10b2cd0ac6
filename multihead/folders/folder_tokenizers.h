// Finds the tokenizers of a model folder, in either of two layouts:
//
//   tokenizer.json, and target_tokenizer.json for a vocabulary of the target's own
//   source.spm, target.spm, vocab.json, and target_vocab.json for a vocabulary of the target's own: OPUS's
//   (Tiedemann and Thottingal 2020), which transformers' MarianTokenizer opens
//
// Files beside tokenizer.json say more of that tokenizer (tokenizer_settings.h). The second has SentencePiece models, whose pieces take the ids of vocab.json; a piece that is not there is <unk>. A
// text gets </s> behind it. ">>deu<<" at its start is a token: the language that a model of several is to write.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "multihead/folders/language_codes.h"
#include "multihead/text/tokenizer.h"

namespace mh {

class FolderSource;

struct FolderTokenizers {
  std::optional<Tokenizer> source = {};  // of the target, too, unless it has its own
  std::optional<Tokenizer> target = {};
  std::string source_file = {}, target_file = {};  // that say the ids, for messages
  std::optional<LanguageCodes> languages = {};     // of a tokenizer that puts their codes around texts
  std::vector<std::string> remarks = {};           // what the files say and is not obeyed
};

/// Returns what the folder has, perhaps nothing. The tokenizer of tokenizer.json is that which AutoTokenizer of transformers 5
/// makes of the folder (apply_settings.h). Throws FileError when a file of OPUS's layout is missing, FormatError on damaged
/// ones.
FolderTokenizers read_folder_tokenizers(const FolderSource& folder);

}  // namespace mh
