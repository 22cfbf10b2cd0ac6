#include "multihead/folders/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/suggestions.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

using nlohmann::json;

constexpr int64_t kMostLabels = 1 << 16;

std::optional<LabelsOf> labels_of_class(const json& config) {
  const auto classes = config.find("architectures");
  if (classes == config.end() || !classes->is_array() || classes->empty() || !classes->front().is_string())
    return std::nullopt;
  const std::string& name = classes->front().get_ref<const std::string&>();
  if (name.ends_with("ForSequenceClassification")) return LabelsOf::kTexts;
  if (name.ends_with("ForTokenClassification")) return LabelsOf::kTokens;
  return std::nullopt;
}

std::optional<int64_t> said_number(const json& config, std::string_view name) {
  const auto found = config.find("num_labels");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (!found->is_number_unsigned() || *found < 1 || *found > kMostLabels)
    throw FormatError(fmt::format("{}: num_labels is {}; expected a number from 1 to {}", name,
                                  json_excerpt(*found), kMostLabels));
  return found->get<int64_t>();
}

std::vector<std::string> label_names(const json& config, std::string_view name) {
  const std::optional<int64_t> number = said_number(config, name);
  std::vector<std::string> names;
  const auto listed = config.find("id2label");
  if (listed == config.end() || listed->is_null()) {
    for (int64_t i = 0; i < number.value_or(2); ++i) names.push_back(fmt::format("LABEL_{}", i));
    return names;
  }
  if (!listed->is_object() || listed->empty() || std::ssize(*listed) > kMostLabels)
    throw FormatError(fmt::format(
        "{}: id2label is {}; expected an object such as {{\"0\": \"negative\", \"1\": \"positive\"}}", name,
        json_excerpt(*listed)));
  for (size_t i = 0; i < listed->size(); ++i) {
    const auto found = listed->find(std::to_string(i));
    if (found == listed->end() || !found->is_string()) {
      throw FormatError(
          fmt::format("{}: id2label has {} labels and no name for label {}; expected the names of 0 to {}",
                      name, listed->size(), i, listed->size() - 1));
    }
    names.push_back(found->get<std::string>());
  }
  if (number && *number != std::ssize(names)) {
    throw FormatError(
        fmt::format("{}: id2label has {} labels, and num_labels says {}; make both those of the weights",
                    name, names.size(), *number));
  }
  return names;
}

/// What a cross-encoder of sentence-transformers makes of its logits; nothing where the file does not say it.
std::optional<LabelScores> cross_encoder_scores(const json& config, std::string_view name) {
  const auto scores_of = [&](const json& function, const char* key) -> std::optional<LabelScores> {
    if (function.is_null()) return std::nullopt;
    const std::string said = function.is_string() ? function.get<std::string>() : "";
    if (said.ends_with(".Identity")) return LabelScores::kLogits;
    if (said.ends_with(".Sigmoid")) return LabelScores::kSigmoid;
    throw FormatError(
        fmt::format("{}: {} is {}; expected torch's Identity or Sigmoid", name, key, json_excerpt(function)));
  };
  if (const auto own = config.find("sentence_transformers"); own != config.end() && own->is_object()) {
    if (const auto found = own->find("activation_fn"); found != own->end())
      return scores_of(*found, "sentence_transformers.activation_fn");
  }
  constexpr const char* kOlder = "sbert_ce_default_activation_function";
  const auto older = config.find(kOlder);
  return older == config.end() ? std::nullopt : scores_of(*older, kOlder);
}

LabelScores label_scores(const json& config, size_t labels, std::string_view name) {
  if (const auto said = cross_encoder_scores(config, name)) return *said;
  const auto problem = config.find("problem_type");
  if (problem == config.end() || problem->is_null())
    return labels == 1 ? LabelScores::kSigmoid : LabelScores::kSoftmax;
  if (*problem == "regression") return LabelScores::kLogits;
  if (*problem == "multi_label_classification") return LabelScores::kSigmoid;
  if (*problem == "single_label_classification")
    return labels == 1 ? LabelScores::kSigmoid : LabelScores::kSoftmax;
  throw FormatError(
      fmt::format("{}: problem_type is {}; expected single_label_classification, multi_label_classification "
                  "or regression",
                  name, json_excerpt(*problem)));
}

}  // namespace

int32_t Labels::number_of(std::string_view label) const {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == label) return static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::to_string(i) == label) return static_cast<int32_t>(i);
  }
  constexpr size_t kShown = 30;
  const size_t shown = std::min(names.size(), kShown);
  std::string message =
      fmt::format("there is no label '{}'; there are {}{}", label,
                  fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                  shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "");
  if (const std::string meant = did_you_mean(label, names); !meant.empty()) message += "; " + meant;
  throw UsageError(message);
}

std::optional<Labels> read_labels(std::string_view text, std::string_view name) {
  const json config = parse_json_strictly(text, name);
  if (!config.is_object()) return std::nullopt;  // its family says so
  const std::optional<LabelsOf> of = labels_of_class(config);
  if (!of) return std::nullopt;
  Labels labels{.of = *of, .names = label_names(config, name)};
  // Of tokens the pipelines of transformers always take a softmax.
  if (*of == LabelsOf::kTexts) labels.scores = label_scores(config, labels.names.size(), name);
  return labels;
}

}  // namespace mh
