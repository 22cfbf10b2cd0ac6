// Texts in, labels out: what a classifier says of each text, or of each of its tokens.
//
//   const mh::ModelFolder folder = mh::load_model_folder("distilbert-sst2");
//   const mh::LabelledText found = mh::classify_text(folder, {"a lovely film"}).at(0);
//   const int32_t best = found.rows[0].best_first()[0];
//   folder.labels->names[best];                    // "POSITIVE"
//   found.rows[0].scores[best];                    // its probability
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/text/long_lines.h"

namespace mh {

struct ModelFolder;
class Sites;

/// What a classifier says of a text, or of a token.
struct LabelRow {
  std::vector<float> logits = {};   // of each label
  std::vector<double> scores = {};  // of each label, made of the logits as Labels::scores says

  /// The labels by their logits, the largest first; of equal ones the earlier.
  std::vector<int32_t> best_first() const;
};

/// A token that has labels.
struct LabelledToken {
  int32_t id = 0;
  std::string token = {};                       // as the vocabulary has it
  std::pair<int32_t, int32_t> characters = {};  // [first, second) of its text
};

struct LabelledText {
  std::vector<LabelRow> rows = {};  // one, or one for each of the tokens
  std::vector<LabelledToken> tokens =
      {};  // of a classifier of tokens: those of the text, without special ones
};

struct ClassifyOptions {
  /// The second text of each text, which the model reads as one sequence with it; empty: there are none.
  std::vector<std::string> pairs = {};
  LinesFrom from = {.one = "text"};  // what errors and remarks call the texts
  bool strict = false;               // refuse a text that is too long, which is cut otherwise
  int64_t max_batch_tokens = 4096;   // most tokens of a batch; results do not depend on it
  Sites* sites = nullptr;            // whose sequences are the texts
  std::function<void(const std::string&)> remark = nullptr;  // hears how many texts were cut

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Text";
    v("strict", strict, {},
      {.group = kGroup, .help = "Refuse a text that is longer than the model reads; it is cut otherwise"});
    v("max_batch_tokens", max_batch_tokens, {.low = 1},
      {.group = kGroup, .help = "Most tokens in a batch", .rare = true});
  }
};

/// The labels of the texts, in their order. Throws UsageError when the model is no classifier, on pairs that it does not read,
/// that a classifier of tokens is given, or that are not as many as texts, on a text of no tokens, and on invalid options;
/// FormatError on a text that is not UTF-8, and with `strict` on one that is too long; FileError when the folder has no
/// tokenizer; Error when logits are not finite.
std::vector<LabelledText> classify_text(const ModelFolder& folder, const std::vector<std::string>& texts,
                                        const ClassifyOptions& options = {});

}  // namespace mh
