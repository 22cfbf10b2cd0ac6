// multihead convert --precision: the same model with weights of fewer bits.
#pragma once

#include <string>

#include "cli/convert_report.h"
#include "cli/convert_sentences.h"
#include "multihead/base/enum_names.h"
#include "multihead/base/stored_matrix.h"

namespace mh::cli {

/// How matrices are written (docs/precision.md).
enum class SmallWeights {
  kInt8,  // a folder, with a scale for each row
  kQ8_0,  // a GGUF file of blocks
  kQ4_0,
};

inline constexpr EnumNames<SmallWeights> kSmallWeightsNames = {
    {"int8", SmallWeights::kInt8}, {"q8_0", SmallWeights::kQ8_0}, {"q4_0", SmallWeights::kQ4_0}};

struct ToSmallWeights {
  std::string model, out;  // the folder or file to read, and to make
  SmallWeights type = SmallWeights::kInt8;
  NumberType rest = NumberType::kBFloat16;  // of a folder's other numbers
  bool own_format = false;
  CompareOn on;
};

/// Writes it, opens it again, and compares its outputs with those of the given model. Throws UsageError on a model that cannot be
/// written so, and what reading and writing throw.
ConvertReport convert_to_small(const ToSmallWeights& asked);

}  // namespace mh::cli
