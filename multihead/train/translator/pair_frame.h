// PairFrame: what stands around the texts of a pair when a model of a folder is trained further, as in transformers: a source is
// what `translate` reads, a target what the folder's tokenizer makes of a text_target, which are the labels there.
//
//                             the encoder reads    the target           the decoder reads
//   Marian, T5                text </s>            text </s>            <pad> text
//   BART                      <s> text </s>        <s> text </s>        </s> <s> text
//   M2M-100, NLLB, mBART-50   CODE text </s>       CODE text </s>       </s> CODE text
//   mBART                     text </s> CODE       text </s> CODE       CODE text </s>
//   NLLB as it was at first   text </s> CODE       text </s> CODE       </s> text </s>
//
// The decoder reads the target behind the model's start token, shifted by one (batch/teacher_forced.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/generate/search.h"
#include "multihead/train/translator/pair_texts.h"

namespace mh {

/// Of a translator that is made here it stays as it is.
struct PairFrame {
  struct Ends {
    std::vector<int32_t> before = {}, behind = {};
  };
  bool own_template =
      true;  // the tokenizers put what is needed around a text; else `source` and `target` say it
  Ends source = {}, target = {};
  std::string prefix = {};    // before each text of a source that has words
  SearchOptions search = {};  // what the folder says of translations, which validation makes
};

/// Throws UsageError when the folder has no translator, when `texts` lack a language that it needs or name one that it does
/// not have, when its tokenizers put no end token behind a text, and on an mBART whose start token transformers would not train;
/// FileError when it lacks a tokenizer.
PairFrame frame_of(const ModelFolder& folder, const PairTexts& texts);

}  // namespace mh
