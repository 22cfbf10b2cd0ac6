// All settings of `multihead score`: of texts, which are read in windows, and of translations.
#pragma once

#include "multihead/evaluate/perplexity.h"
#include "multihead/text/text_languages.h"

namespace mh {

struct ScoreSettings {
  WindowOptions windows = {};  // max_batch_tokens is that of translations, too
  TextLanguages languages = {};

  template <class V>
  void visit(V& v) {
    windows.visit(v);
    languages.visit(v);
  }
};

}  // namespace mh
