// share/viewer/, the page without its data, and what a live page has besides; their bytes are in the library.
#pragma once

#include <string>
#include <string_view>

namespace mh {

/// The page with `data` (page_numbers.h) in the place of {data}. live: the elements of a live page (live_model.h), to which the page's
/// policy then allows what they need; empty: none.
std::string page_with(std::string_view data, std::string_view live = {});

/// What runs a model in a page: the library, multihead.js, which loads it, and the worker that uses both.
struct LivePageParts {
  std::string_view module, loader, worker;
};
LivePageParts live_page_parts();

/// A text as it may stand in a <script> element that is no script: "<" as JSON escapes it.
std::string in_element(std::string text);

}  // namespace mh
