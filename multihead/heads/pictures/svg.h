// The beginnings of every picture: text that is safe in XML, and a page with a background of its own, so that
// it can be read on light and on dark pages.
#pragma once

#include <string>
#include <string_view>

namespace mh {

/// `text` as XML may hold it between tags: <, > and & escaped; control characters and what is no UTF-8
/// replaced by U+FFFD.
std::string xml_text(std::string_view text);

/// The opening tag and a white background, in pixels; "</svg>\n" ends it.
std::string svg_page(double width, double height);

}  // namespace mh
