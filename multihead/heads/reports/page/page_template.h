// share/viewer/page.html, the page without its data, whose bytes are in the library.
#pragma once

#include <string>
#include <string_view>

namespace mh {

/// The page with `data` (page_numbers.h) in the place of {data}.
std::string page_with(std::string_view data);

}  // namespace mh
