#include "given_text.h"

namespace mh::python {

Observation observe_given(const LoadedModel& loaded, const GivenText& text, const std::string& target,
                          const ObserveTextOptions& options) {
  return read_given(
      text, [&](const std::string& words) { return observe_text(loaded.folder(), words, target, options); },
      [&](const Ids& ids) { return observe_tokens(loaded.folder(), ids, target, options); });
}

}  // namespace mh::python
