// Labels: what a classifier's config.json says about the labels that its last layer gives.
//
//   architectures   ["BertForSequenceClassification"]: texts get labels; ["...ForTokenClassification"]: tokens get them
//   id2label        {"0": "negative", "1": "positive"}; without it "LABEL_0", ... of num_labels (2 where that is missing, too)
//   problem_type    what the logits mean, as the pipelines of transformers take it; without it: one label "sigmoid", several
//                   "softmax"
//   sentence_transformers.activation_fn, sbert_ce_default_activation_function
//                   of cross-encoders: torch's Identity or Sigmoid in place of that
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/enum_names.h"

namespace mh {

enum class LabelsOf { kTexts, kTokens };
inline constexpr EnumNames<LabelsOf> kLabelsOfNames = {{"texts", LabelsOf::kTexts},
                                                       {"tokens", LabelsOf::kTokens}};

/// How scores are made of logits z.
enum class LabelScores {
  kSoftmax,  // exp(z_i) / sum_j exp(z_j): one label is true
  kSigmoid,  // 1 / (1 + exp(-z_i)): each label is true or not
  kLogits    // z_i: of a regression
};
inline constexpr EnumNames<LabelScores> kLabelScoresNames = {
    {"softmax", LabelScores::kSoftmax}, {"sigmoid", LabelScores::kSigmoid}, {"logits", LabelScores::kLogits}};

struct Labels {
  LabelsOf of = LabelsOf::kTexts;
  LabelScores scores = LabelScores::kSoftmax;
  std::vector<std::string> names = {};  // by number

  /// The number of a label, by its name, or by the number itself. Throws UsageError that lists those that exist.
  int32_t number_of(std::string_view label) const;
};

/// Reads them. Returns nothing when `architectures` names no class for labels of texts or tokens. Throws FormatError on
/// id2label that does not number its labels 0, 1, ..., on a num_labels that says another number, and on a problem_type or
/// activation that is not one of those above.
std::optional<Labels> read_labels(std::string_view json, std::string_view name);

}  // namespace mh
