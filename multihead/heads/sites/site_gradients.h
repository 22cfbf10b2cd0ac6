// Gradients of linear functions of the values at a site, for many texts at once: of the values along a direction, of a head's
// output, of a logit, of the difference of two.
//
//   std::vector<mh::Observation> texts;   // of observe_text(folder, line, {}, {.tokens_alone = true}), for each line
//   std::vector<mh::SiteSum> sums;        // for each text {.position = -1, .along = direction}: at its last row
//   const auto found = mh::site_gradients(*folder.model, texts, {.of = "decoder.3.output", .at = {"*.heads"}}, sums);
//   found[0].gradients                    // by site, each of the shape of the site's value of text 0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/heads/sites/observe_text.h"
#include "multihead/models/model.h"

namespace mh {

struct SiteGradientsAsked {
  std::string of;                // the name of the site whose values are summed
  std::optional<int> head = {};  // of a site of heads side by side whose columns; none: all
  std::vector<std::string> at;   // names or patterns of the sites whose gradients are wanted
};

/// Of one text: the sum of the values at a site, each times a number of `along`.
struct SiteSum {
  std::optional<int64_t> position =
      {};  // which row, from 0, or below 0 from the end: -1 is the last one; none: all rows
  std::vector<int32_t> columns = {};  // which columns `along` is of; empty: all, or all of the head
  Tensor along;                       // [1, columns] for every row that is meant, or [rows meant, columns]
};

struct SiteGradients {
  double value = 0;  // of the sum
  /// By site, in the order of the model, each as the site's value of this text. A site on which the sum does not depend, though
  /// the model computes it before, has a gradient of 0.
  std::vector<std::pair<std::string, Tensor>> gradients = {};
};

/// Larger batches take more memory for what is recorded, and no less time.
inline constexpr int64_t kMostGradientTokens = 256;

/// texts: with their tokens; sums: one for each. sites: may change values; their sequences are the texts. Texts run in batches of
/// kMostGradientTokens, which change nothing. Sites that the model computes after `of` have no gradient: a pattern leaves them out,
/// and a name or a pattern that fits no other one throws UsageError. Throws UsageError, too, on sites, heads, columns and positions
/// that are not there and on numbers that are not finite, ShapeError on `along` of another shape, Error when a gradient is not
/// finite. REQUIRES: texts.size() == sums.size().
std::vector<SiteGradients> site_gradients(const Model& model, std::span<const Observation> texts,
                                          const SiteGradientsAsked& asked, std::span<const SiteSum> sums,
                                          Sites* sites = nullptr);

}  // namespace mh
