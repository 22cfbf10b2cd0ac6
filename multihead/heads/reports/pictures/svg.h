// What every picture is made of: text that is safe in XML, a page with a background of its own, so that it can be read on
// light and on dark pages, and its shapes.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace mh {

/// `text` as XML may hold it between tags: <, > and & escaped; control characters and what is no UTF-8
/// replaced by U+FFFD.
std::string xml_text(std::string_view text);

/// The opening tag and a white background, in pixels; "</svg>\n" ends it.
std::string svg_page(double width, double height);

constexpr double kSvgTextLine = 18;  // between lines of text
constexpr double kSvgLetter = 7;     // about as wide as the widest font makes the mean letter
double svg_text_width(std::string_view text);

// `more`: attributes, as they are.
std::string svg_text(double x, double y, std::string_view text, std::string_view more = "");
/// Without a line end, so that the number of a tick may stand in its line.
std::string svg_line(double x1, double x2, double y1, double y2, std::string_view more);
std::string svg_circle(double x, double y, std::string_view more);
/// A rectangle with a thin grey line around it.
std::string svg_frame(double x, double y, double width, double height, std::string_view fill);
/// The colour for a share from 0, nearly white, to 1, dark blue. Blue alone, so that nobody needs to tell colours apart.
std::string svg_blue(double share);
/// Which number each blue is, with the numbers at shares 0, 1/2 and 1; its top left corner.
std::string svg_blue_scale(double x, double y, std::string_view what,
                           const std::array<std::string, 3>& numbers);
constexpr double kSvgScaleWidth = 270, kSvgScaleHeight = 24;

}  // namespace mh
