// What activation patching reads: a clean and a corrupt text of equally many tokens, and two answers between which the model
// decides. Of every kind of model that predicts words:
//
//   a causal model        the word after the text
//   a translator          the first word of the target, or the one after `prefix`
//   a classifier          one of its labels, by its name or number; of a classifier of tokens that of the token at `position`
//   an encoder            the word in the place of the mask token (folders/mask_token.h), which the text has once
//
// And where it puts a value in, and how the model then decides.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/nn/attention_place.h"
#include "multihead/text/text_languages.h"

namespace mh {

struct PatchQuestion {
  std::string clean, corrupt;
  std::string answer, wrong;         // words; of a sentence model texts
  std::string prefix = {};           // of a translator: what its decoder has read, the same in all runs
  std::optional<int> position = {};  // of a classifier of tokens: whose label is asked for, counted from 0
};

/// A text as the model reads it.
struct PatchText {
  std::vector<int32_t> ids;
  std::vector<int32_t> types = {};       // batch/batch.h; empty: all of type 0
  std::vector<std::string> labels = {};  // of each token, as people read it
};

/// An answer. A word of several tokens counts by its first one.
struct PatchAnswer {
  std::string text;
  std::optional<int32_t> token =
      {};                  // of a classifier the number of the label; none: a text of a sentence model
  std::string label = {};  // of that token
  int64_t tokens = 0;      // that the word has
};

struct PatchTexts {
  PatchText clean, corrupt;
  PatchText clean_shifted = {}, corrupt_shifted = {};  // of a classifier with a decoder: what that reads
  PatchText target = {};   // of a translator: what the decoder reads, the start token first
  int32_t predicting = 0;  // the position whose state predicts the answer, of a translator in the target
  bool of_token = false;   // the answers are labels of the token there
  PatchAnswer answer, wrong;
};

/// What of the clean run is put into the corrupt one.
enum class PatchedPart {
  kHeads,    // what a head gives before W^O, the site ATTENTION.heads
  kPattern,  // a head's weights, the site ATTENTION.weights.HEAD
  kStream,   // the input of a layer, LAYER.input, or what the last layer of a stack gives, LAYER.output
};
inline constexpr EnumNames<PatchedPart> kPatchedPartNames = {
    {"heads", PatchedPart::kHeads}, {"patterns", PatchedPart::kPattern}, {"stream", PatchedPart::kStream}};

/// Where.
struct PatchPlace {
  std::string stack;                       // "encoder", "decoder"
  int layer = 0;                           // of the stream also the number of layers: the last one's output
  std::string attention = {};              // empty: the stream
  std::optional<AttentionKind> kind = {};  // of the attention
  int head = 0;
  std::optional<int32_t> position = {};  // none: all positions
};

/// A run's score of each answer; the run's score is their difference.
struct AnswerScores {
  double answer = 0;
  double wrong = 0;
  double score() const { return answer - wrong; }
};

using PatchRemark = std::function<void(const std::string&)>;

/// One text and the answers after it, in the same places and words; either may be missing.
struct AnswerQuestion {
  std::string text;
  std::string answer = {}, wrong = {};  // empty: there is none
  std::string prefix = {};
  std::optional<int> position = {};
};
struct AnswerText {
  PatchText text;
  PatchText shifted = {}, target = {};
  int32_t predicting = 0;
  bool of_token = false;
  std::optional<PatchAnswer> answer = {}, wrong = {};
};
/// Throws as read_patch_texts() does.
AnswerText read_answer_text(const ModelFolder& folder, const AnswerQuestion& question,
                            const TextLanguages& languages, const PatchRemark& remark);
AnswerText read_answer_text(const SentenceModel& model, const AnswerQuestion& question,
                            const PatchRemark& remark);

/// Reads the texts for a model that predicts words. The tokens of an answer are those that it has in its place in the clean
/// text: between two words a space is put where neither has one. `remark` hears which answers have several tokens. Throws
/// UsageError on texts of different lengths, on a model that predicts no words, a prefix for a model that translates nothing,
/// masks that are not there, are several or stand at different positions, a token that a classifier of tokens has not or another model
/// is asked for, and on answers of no tokens, of the unknown token, or
/// of the same first token; FormatError on texts that are not UTF-8 or longer than the model reads.
PatchTexts read_patch_texts(const ModelFolder& folder, const PatchQuestion& question,
                            const TextLanguages& languages, const PatchRemark& remark);
/// The same for a model that makes vectors; answers are left to the reader of vectors. Throws UsageError on a prefix or a token, on answers
/// without text or that are the same, and on texts of different lengths.
PatchTexts read_patch_texts(const SentenceModel& model, const PatchQuestion& question,
                            const PatchRemark& remark);

}  // namespace mh
