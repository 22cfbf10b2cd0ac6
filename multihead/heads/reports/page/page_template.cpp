#include "multihead/heads/reports/page/page_template.h"

#include <fmt/format.h>

#include <utility>

#include "multihead/base/embed.h"
#include "multihead/base/error.h"

// MULTIHEAD_VIEWER is share/viewer of the sources.
MH_EMBED(mh_page_template, MULTIHEAD_VIEWER "/page.html");
MH_EMBED(mh_live_module, MULTIHEAD_VIEWER "/multihead.wasm");
MH_EMBED(mh_live_loader, MULTIHEAD_VIEWER "/multihead.js");
MH_EMBED(mh_live_worker, MULTIHEAD_VIEWER "/worker.js");

namespace mh {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

/// A page whose places are filled from its beginning to its end.
class PageParts {
 public:
  PageParts(std::string_view page, size_t more) : rest_(page) { html_.reserve(page.size() + more); }

  void fill(std::string_view place, std::string_view with) {
    const size_t at = rest_.find(place);
    if (at == std::string_view::npos)
      throw Error(fmt::format("the page that came with this build has no place for {}", place));
    html_.append(rest_.substr(0, at)).append(with);
    rest_.remove_prefix(at + place.size());
  }
  std::string finished() && { return std::move(html_.append(rest_)); }

 private:
  std::string_view rest_;
  std::string html_;
};

}  // namespace

std::string page_with(std::string_view data, std::string_view live) {
  PageParts page(between(mh_page_template, mh_page_template_end), data.size() + live.size());
  page.fill("{live-policy}", live.empty() ? "" : " 'wasm-unsafe-eval'; worker-src blob:");
  page.fill("{data}", data);
  page.fill("{live}", live);
  return std::move(page).finished();
}

LivePageParts live_page_parts() {
  return {.module = between(mh_live_module, mh_live_module_end),
          .loader = between(mh_live_loader, mh_live_loader_end),
          .worker = between(mh_live_worker, mh_live_worker_end)};
}

std::string in_element(std::string text) {
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; ++at) text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace mh
