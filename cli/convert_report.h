// What `multihead convert` says about the model it made.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/stored_weights.h"
#include "multihead/heads/conversion/convert_model.h"

namespace mh::cli {

/// What a conversion promises of the new model's outputs.
enum class Promise {
  kSame,     // those of the model that was given, but for rounding
  kAsMuted,  // those of the model that was given with some heads muted, but for rounding
  kOther,    // none
  kRounded,  // none: the same model with weights of fewer bits
};

/// Before the conversion and after it.
template <class T>
struct BeforeAfter {
  T before{}, after{};
};

struct Cost {
  const char* key;   // in JSON
  const char* name;  // in the table
  BeforeAfter<int64_t> count;
};

struct ConvertReport {
  std::string model, out;  // folders
  std::string conversion;  // "merged heads"
  Promise promise = Promise::kSame;
  std::vector<Cost> costs;
  /// As which types the files store the weights, with Promise::kRounded.
  std::optional<BeforeAfter<std::vector<StoredAlike>>> weights = {};
  std::string compared_on;                                       // "2 pairs of sentences"
  ModelDifference difference = {};                               // from the model that was given
  std::optional<ModelDifference> from_muted = {};                // with Promise::kAsMuted
  std::optional<BeforeAfter<double>> mean_log_probability = {};  // of a target token, on given sentences
};

/// The largest difference that rounding explains, as a share of the largest number.
inline constexpr double kRounding = 1e-3;
bool is_rounding(const ModelDifference& difference);

/// A line for each output that was compared; and the same with the largest magnitudes as JSON.
std::string difference_lines(const ModelDifference& difference);
nlohmann::ordered_json difference_json(const ModelDifference& difference);

std::string in_words(const ConvertReport& report);
std::string as_json(const ConvertReport& report);

}  // namespace mh::cli
