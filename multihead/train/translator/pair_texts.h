// PairTexts: the settings of texts that a model which was trained already wants (pair_frame.h): its languages, and a prefix.
#pragma once

#include <string>
#include <string_view>

#include "multihead/io/config.h"
#include "multihead/text/text_languages.h"

namespace mh {

struct PairTexts {
  TextLanguages languages = {};
  std::string source_prefix = {};  // before each source; empty: none

  /// The name of one that is given; empty: none is.
  std::string_view given() const {
    if (!languages.source_language.value_or("").empty()) return "source_language";
    if (!languages.target_language.value_or("").empty()) return "target_language";
    return source_prefix.empty() ? "" : "source_prefix";
  }

  template <class V>
  void visit(V& v, const char* group) {
    languages.visit(v);
    v("source_prefix", source_prefix, {},
      {.group = group,
       .help = "Put TEXT before each text of the source, as T5's tasks want (\"summarize: \"); info lists "
               "those of the model of `init_from`",
       .value = "TEXT"});
  }
};

}  // namespace mh
