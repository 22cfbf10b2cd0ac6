// Makes a direction (direction.h) of texts. r(x) is the row of the last position of text x at a site, or the mean of its rows:
//
//   direction = mean of r(x) over the texts `toward`  -  mean of r(x) over the texts `away`
//
// Without `away` it is the mean alone: of a head's contribution ("decoder.9.self_attention.contributions.4") what the head adds to the
// stream on average, a function vector (Todd et al. 2024). Such a direction is added where the attention adds what its heads give,
// "decoder.9.self_attention.output"; any other one where it was read, unless `at` names another site.
//
//   const mh::SteerDirection direction = mh::make_direction(
//       folder, {.toward = polite, .away = rude, .site = "decoder.12.output"});
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/steering/direction.h"
#include "multihead/nn/sites.h"
#include "multihead/text/text_languages.h"

namespace mh {

/// Which rows of a text are read.
enum class DirectionRows {
  kLast,  // that of its last position, which has seen all of the text in a causal model
  kAll,   // the mean over all positions, special tokens among them
};
inline constexpr EnumNames<DirectionRows> kDirectionRowsNames = {{"last", DirectionRows::kLast},
                                                                 {"all", DirectionRows::kAll}};

struct DirectionTexts {
  std::vector<std::string> toward,
      away = {};                 // a translator's sources; its decoder reads their greedy translations
  std::string site = {};         // the name of the site that is read
  std::optional<int> head = {};  // of sites of heads side by side
  std::string at = {};           // where the direction is added; empty: see above
};

struct DirectionOptions {
  std::optional<DirectionRows> rows = {};  // none: the last of a causal model, all of any other
  TextLanguages languages = {};
  Sites* sites = nullptr;  // called while texts are read, e.g. SiteValues that mute heads
  std::function<void(const std::string&)> remark = nullptr;
  std::function<void(int64_t texts)> progress = nullptr;  // how many are read

  template <class V>
  void visit(V& v) {
    v("rows", rows, kDirectionRowsNames,
      {.group = "Direction",
       .help = "Rows of a text that make the direction: of its last position, or the mean of all",
       .otherwise = "last of a causal model, else all"});
    languages.visit(v);
  }
};

/// Throws UsageError on no texts, on texts without tokens, on a site or head that the model does not have or whose columns are keys, and
/// on an `at` of other columns; Error when values are not finite.
SteerDirection make_direction(const ModelFolder& folder, const DirectionTexts& texts,
                              const DirectionOptions& options = {});

}  // namespace mh
