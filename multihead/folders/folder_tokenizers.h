// Finds the tokenizers of a model folder, in the first of these layouts that it has:
//
//   tokenizer.json, and target_tokenizer.json for a vocabulary of the target's own; files beside it say more of it
//   (tokenizer_settings.h)
//   source.spm and target.spm, or sentencepiece.bpe.model, with vocab.json (piece_tokenizers.h)
//   tokenizer.model
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
