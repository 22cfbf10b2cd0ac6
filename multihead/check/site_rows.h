// What a model computes here at its sites, in several ways.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/check/check_texts.h"
#include "multihead/nn/sites.h"

namespace mh {

/// How the texts are read.
enum class CheckedRun {
  kTogether,  // in one batch
  kAlone,     // one after the other
  kCached,    // token by token, all texts at once, with a cache of keys and values
};
inline constexpr EnumNames<CheckedRun> kCheckedRunNames = {
    {"together", CheckedRun::kTogether}, {"alone", CheckedRun::kAlone}, {"cached", CheckedRun::kCached}};

/// The rows of a site, those of all texts end to end. Of scores and weights a row has its own keys alone.
using CheckedRows = std::vector<std::vector<float>>;
using RowsOfSites = std::map<std::string, CheckedRows, std::less<>>;

/// The sites of a model but those whose values follow from others: gates are 1 as nothing is changed, the inputs of one head are those
/// of all, and what norms and feed-forward layers multiply and read shows in what they give.
std::vector<SiteShape> compared_sites(const Model& model);

/// The values at all of these that the run meets: a cached run meets those of a decoder. Throws as Model::read().
RowsOfSites rows_of_sites(const ModelFolder& folder, const CheckTexts& texts, CheckedRun run);

/// The greedy text of each, without its end.
struct GreedyIds {
  std::vector<int32_t> ids;
  bool ended = false;  // by the model's end token
};
std::vector<GreedyIds> greedy_ids(const ModelFolder& folder, const CheckTexts& texts);

}  // namespace mh
