// The parts of the JSON about heads (docs/file-formats.md) that several reports have. It shows nlohmann's type, so
// only the sources that write JSON include it.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/interval.h"
#include "multihead/base/precision.h"
#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/measures/head_statistics.h"
#include "multihead/heads/measures/relations.h"
#include "multihead/heads/measures/word_alignment.h"
#include "multihead/heads/patching/patch_texts.h"

namespace mh {

using HeadsJson = nlohmann::ordered_json;

/// {"schema": kHeadsSchema, "model": model}, with which every report begins.
HeadsJson json_of_model(const std::string& model);
/// "sentences" and, of a translator, "targets".
void add_read(HeadsJson& json, const CorpusRead& read);
HeadsJson json_of(const HeadFigures& head);
/// Half the width of an interval; null where it is not known.
HeadsJson half_or_null(const Interval& interval);
/// {"mean", "half"}.
HeadsJson json_of(const Interval& interval);
HeadsJson json_of(const RelationScore& score);
HeadsJson json_of(const AlignmentScore& score);
/// {"text"}, and of a word or a label "token", "id" and "tokens".
HeadsJson json_of(const PatchAnswer& answer);
/// Of what is a share of the corpus, and may not be there: null.
template <class T>
HeadsJson json_or_null(const std::optional<T>& value) {
  return value ? HeadsJson(*value) : HeadsJson();
}

/// {"numbers", "blocks"}: the kernels that multiply with weights that a file has so (kernels/product_kernels.h).
HeadsJson json_of_kernels(PrecisionChoice precision);

/// A square of numbers as a list of its rows.
HeadsJson json_rows(const std::vector<double>& numbers, size_t rows);
/// A list of what json_of_one() makes of each.
template <class List, class Make>
HeadsJson json_items(const List& list, const Make& json_of_one) {
  HeadsJson all = HeadsJson::array();
  for (const auto& one : list) all.push_back(json_of_one(one));
  return all;
}

/// The text of the file.
std::string written(const HeadsJson& json);

}  // namespace mh
