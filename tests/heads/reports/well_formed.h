// Whether a picture is XML that a browser reads.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/utf8.h"

namespace mh {

inline size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Elements close in order, attributes are quoted, & begins an entity, and no character is one that XML forbids.
inline void expect_well_formed(const std::string& svg) {
  EXPECT_EQ(first_invalid_utf8(svg), std::string::npos);
  std::vector<std::string> open;
  for (size_t at = 0; at < svg.size();) {
    const auto c = static_cast<unsigned char>(svg[at]);
    ASSERT_TRUE(c >= 0x20 || c == '\n') << "a control character at " << at;
    if (c == '&') {
      const std::string entity = svg.substr(at, svg.find(';', at) - at + 1);
      ASSERT_TRUE(entity == "&lt;" || entity == "&gt;" || entity == "&amp;") << entity;
    }
    ASSERT_NE(c, '>') << "outside of a tag, at " << at;
    if (c != '<') {
      ++at;
      continue;
    }
    const size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    EXPECT_EQ(count(tag, "\"") % 2, 0u) << tag;
    EXPECT_EQ(count(tag, "<"), 0u) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end + 1;
  }
  EXPECT_TRUE(open.empty());
}

}  // namespace mh
