// What `multihead heads where` prints, for 80 columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/heads/measures/heads_where.h"

namespace mh::cli {

/// Everything about each head.
std::string evidence_pages(const WhereReport& report, bool colours);
/// A line a head.
std::string evidence_table(const WhereReport& report);

/// Characters [begin, end) of a text, and what stands around them.
struct MarkedPart {
  int32_t begin = 0, end = 0;
  std::string open = {}, close = {};  // of one column each
  std::string colour = {};            // an escape sequence of a terminal, or nothing
};
/// At most `width` columns of a text on one line, cut around the marked parts with ellipses. Of two parts that overlap the second
/// has what is left. REQUIRES: width >= 40, at most two parts.
std::string excerpt(const std::string& text, const std::vector<MarkedPart>& parts, int width);

}  // namespace mh::cli
