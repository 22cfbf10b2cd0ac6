// What a function of Python may be given in place of a text: its token ids.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model.h"
#include "multihead/heads/sites/observe_text.h"

namespace mh::python {

/// Token ids as the model reads them, special tokens and all.
using Ids = std::vector<int32_t>;
using GivenText = std::variant<std::string, Ids>;
/// All of one kind.
using GivenTexts = std::variant<std::vector<std::string>, std::vector<Ids>>;

/// on_text(text) or on_ids(ids), whichever was given.
template <class OnText, class OnIds>
auto read_given(const GivenText& given, const OnText& on_text, const OnIds& on_ids) {
  if (const Ids* const ids = std::get_if<Ids>(&given)) return on_ids(*ids);
  return on_text(std::get<std::string>(given));
}
template <class OnTexts, class OnIds>
auto read_given(const GivenTexts& given, const OnTexts& on_texts, const OnIds& on_ids) {
  if (const auto* const ids = std::get_if<std::vector<Ids>>(&given)) return on_ids(*ids);
  return on_texts(std::get<std::vector<std::string>>(given));
}

/// What a model has inside while it reads a text, or the ids.
Observation observe_given(const LoadedModel& loaded, const GivenText& text, const std::string& target,
                          const ObserveTextOptions& options);

/// Of some texts of a list, of which the first is its text `first`: each thread reads its own. targets: one for each, or none.
/// Remarks are told by the calling thread.
std::vector<Observation> observe_each(const LoadedModel& loaded, const std::vector<GivenText>& texts,
                                      const std::vector<std::string>& targets, int64_t first,
                                      const ObserveTextOptions& options);

}  // namespace mh::python
