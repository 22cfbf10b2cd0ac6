#include "multihead/heads/sites/site_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mh {
namespace {

/// Whether a text that ends with `a` can end with `b`.
bool ends_agree(std::string_view a, std::string_view b) {
  return a.size() < b.size() ? b.ends_with(a) : a.ends_with(b);
}

/// Whether a site's name can end with this text.
bool may_end(SitePart part, std::string_view end) {
  const std::string own = fmt::format(".{}", name_of(part));
  if (!is_of_one_head(part)) return ends_agree(own, end);
  while (!end.empty() && end.back() >= '0' && end.back() <= '9') end.remove_suffix(1);  // the head's number
  return ends_agree(own + ".", end);
}

}  // namespace

std::string_view SiteName::text() {
  if (!text_.empty()) return text_;
  const size_t size = site_.write_name(memory_);
  if (size > memory_.size()) return text_ = long_ = site_.name();
  return text_ = {memory_.data(), size};
}

SitePattern::SitePattern(std::string text) : text_(std::move(text)) {
  const std::string_view all = text_;
  const size_t star = all.rfind('*');
  const std::string_view end = star == std::string_view::npos ? all : all.substr(star + 1);
  for (int part = 0; part <= static_cast<int>(kLastSitePart); ++part) {
    if (may_end(static_cast<SitePart>(part), end)) parts_ |= bit_of(static_cast<SitePart>(part));
  }
}

std::vector<std::string> sites_named(std::span<const SiteShape> all, std::span<const std::string> patterns) {
  std::vector<std::string> names;
  for (const SiteShape& site : all) {
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::string& pattern) { return fits(site.name, pattern); }))
      names.push_back(site.name);
  }
  return names;
}

}  // namespace mh
