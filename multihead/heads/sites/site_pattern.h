// SitePattern: a name of sites, or a pattern (* stands for any characters), as a user gives it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/nn/sites.h"

namespace mh {

/// The name of a site, made when it is first asked for. REQUIRES: the site outlives it.
class SiteName {
 public:
  explicit SiteName(const Site& site) : site_(site) {}
  SiteName(const SiteName&) = delete;
  SiteName& operator=(const SiteName&) = delete;

  const Site& site() const { return site_; }
  std::string_view text();

 private:
  const Site& site_;
  std::array<char, 96> memory_;
  std::string long_;       // where the memory is too small
  std::string_view text_;  // empty: it was not made yet
};

/// Parts of sites, a bit for each SitePart.
using SiteParts = uint64_t;
constexpr SiteParts bit_of(SitePart part) {
  return SiteParts{1} << static_cast<uint32_t>(part);
}

class SitePattern {
 public:
  explicit SitePattern(std::string text);

  const std::string& text() const { return text_; }
  /// The parts that the end of the text leaves possible. A model calls its sites in every pass; most of them are
  /// told apart by this number, without their names.
  SiteParts parts() const { return parts_; }
  bool fits(SiteName& name) const {
    return (parts_ & bit_of(name.site().part)) != 0 && mh::fits(name.text(), text_);
  }

 private:
  std::string text_;
  SiteParts parts_ = 0;
};

/// The sites that fit one of the patterns, in the order of `all`.
std::vector<std::string> sites_named(std::span<const SiteShape> all, std::span<const std::string> patterns);

}  // namespace mh
