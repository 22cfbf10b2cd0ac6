// Two texts beside each other, in 80 columns.
#pragma once

#include <string>
#include <string_view>

namespace mh::cli {

/// Lines of at most `width` columns, the left text in the left half, each wrapped between words (and within a
/// word that is wider than its half). Control characters become dots. Every line ends with "\n".
std::string side_by_side(std::string_view left, std::string_view right, int width = 80);

}  // namespace mh::cli
