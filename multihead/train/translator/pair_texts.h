// PairTexts: the settings of texts that a model which was trained already wants (pair_frame.h): its languages, and a prefix.
#pragma once

#include <string>
#include <string_view>

#include "multihead/io/config.h"

namespace mh {

/// Empty: not given.
struct PairTexts {
  std::string source,
      target;                 // languages of a model of many, or their first parts (folders/language_codes.h)
  std::string source_prefix;  // before each source

  /// The name of one that is given; empty: none is.
  std::string_view given() const {
    return !source.empty()          ? "source"
           : !target.empty()        ? "target"
           : !source_prefix.empty() ? "source_prefix"
                                    : "";
  }

  template <class V>
  void visit(V& v, const char* group) {
    v("source", source, {},
      {.group = group,
       .help = "Language of the source, a code of the model of `init_from` or the part of one before _: "
               "deu_Latn, deu",
       .value = "CODE"});
    v("target", target, {},
      {.group = group, .help = "Language of the target, said in the same way", .value = "CODE"});
    v("source_prefix", source_prefix, {},
      {.group = group,
       .help = "Put TEXT before each text of the source, as T5's tasks want (\"summarize: \"); info lists "
               "those of the model of `init_from`",
       .value = "TEXT"});
  }
};

}  // namespace mh
