// How much a study trains: small models of a small language for a minute, models of the built-in grammar for an
// hour, or models of real text for hours.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lab/grammar/grammar.h"
#include "multihead/base/enum_names.h"
#include "multihead/models/translator_shape.h"

namespace mh {

enum class StudySize {
  kQuick,     // one layer on a micro language: all studies in minutes
  kStandard,  // two layers on the built-in grammar: a quarter of a minute of CPU time a run, hundreds of runs
  kPaper,     // real parallel text, the model of kStandard, 1,500 updates of 4,096 tokens: hours
};
inline constexpr EnumNames<StudySize> kSizeNames = {
    {"quick", StudySize::kQuick}, {"standard", StudySize::kStandard}, {"paper", StudySize::kPaper}};
inline std::string_view size_name(StudySize size) {
  return name_of(size, kSizeNames);
}

struct SizeSettings {
  GrammarOptions grammar;  // kStandard
  int32_t vocabulary = 0;  // kPaper: at most so many tokens
  TranslatorShape model;   // the arm that the others differ from; vocabulary and ids come from the text
  int64_t updates = 0, batch_tokens = 0, warmup = 0;
  double learning_rate = 0;
  std::vector<uint64_t> seeds;
  /// So many of them choose an arm's learning rate: two, since one may be lucky where the validation text is small.
  size_t rate_seeds = 2;
  double rate_updates = 1;  // and by runs of this part of the updates
};
SizeSettings size_settings(StudySize size);

}  // namespace mh
