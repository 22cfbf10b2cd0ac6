#include "multihead/heads/reports/pictures/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "multihead/base/terminal_text.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

struct Colour {
  double red, green, blue;
};
// Blues of ColorBrewer (Brewer 2002): lightness falls evenly, also for people who see no colours.
constexpr std::array<Colour, 9> kBlues{{{247, 251, 255},
                                        {222, 235, 247},
                                        {198, 219, 239},
                                        {158, 202, 225},
                                        {107, 174, 214},
                                        {66, 146, 198},
                                        {33, 113, 181},
                                        {8, 81, 156},
                                        {8, 48, 107}}};

}  // namespace

std::string xml_text(std::string_view text) {
  const std::string valid = to_valid_utf8(text);
  std::string out;
  for (size_t at = 0; at < valid.size();) {
    const char32_t c = next_character(valid, at);
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        // XML 1.0, production 2: neither of these is a character.
        append_utf8(out, c < 0x20 || c == 0x7F || c == 0xFFFE || c == 0xFFFF ? U'\uFFFD' : c);
    }
  }
  return out;
}

std::string svg_page(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, height);
}

double svg_text_width(std::string_view text) {
  return kSvgLetter * display_width(text);
}

std::string svg_text(double x, double y, std::string_view text, std::string_view more) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y, more.empty() ? "" : " ", more,
                     xml_text(text));
}

std::string svg_line(double x1, double x2, double y1, double y2, std::string_view more) {
  return fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" {}/>", x1, x2, y1, y2,
                     more);
}

std::string svg_circle(double x, double y, std::string_view more) {
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" {}/>\n", x, y, more);
}

std::string svg_frame(double x, double y, double width, double height, std::string_view fill) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" stroke=\"#777\"/>\n", x,
      y, width, height, fill);
}

std::string svg_blue(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (kBlues.size() - 1);
  const auto low = std::min(static_cast<size_t>(at), kBlues.size() - 2);
  const double between = at - static_cast<double>(low);
  const Colour &a = kBlues[low], &b = kBlues[low + 1];
  const auto mixed = [&](double from, double to) { return std::lround(from + between * (to - from)); };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(a.red, b.red), mixed(a.green, b.green),
                     mixed(a.blue, b.blue));
}

std::string svg_blue_scale(double x, double y, std::string_view what,
                           const std::array<std::string, 3>& numbers) {
  constexpr int kSteps = 32;
  constexpr double kLabel = 110, kWidth = kSvgScaleWidth - kLabel, kHeight = 10;
  std::string out = svg_text(x, y + 10, what);
  const double left = x + kLabel;
  for (int i = 0; i < kSteps; ++i) {
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n",
                       left + kWidth * i / kSteps, y, kWidth / kSteps + 0.5, kHeight,
                       svg_blue((i + 0.5) / kSteps));
  }
  out += svg_frame(left, y, kWidth, kHeight, "none");
  for (size_t n = 0; n < numbers.size(); ++n)
    out += svg_text(left + kWidth * static_cast<double>(n) / 2, y + kSvgScaleHeight, numbers[n],
                    "text-anchor=\"middle\"");
  return out;
}

}  // namespace mh
