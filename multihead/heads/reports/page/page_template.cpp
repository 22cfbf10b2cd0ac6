#include "multihead/heads/reports/page/page_template.h"

#include "multihead/base/embed.h"
#include "multihead/base/error.h"

// MULTIHEAD_PAGE is share/viewer/page.html of the sources.
MH_EMBED(mh_page_template, MULTIHEAD_PAGE);

namespace mh {

std::string page_with(std::string_view data) {
  const std::string_view page(mh_page_template, static_cast<size_t>(mh_page_template_end - mh_page_template));
  constexpr std::string_view kElement = "<script id=\"data\" type=\"text/plain\">", kPlace = "{data}";
  const size_t element = page.find(kElement), at = element + kElement.size();
  if (element == std::string_view::npos || page.substr(at, kPlace.size()) != kPlace)
    throw Error("the page that came with this build has no place for its data");
  std::string html;
  html.reserve(page.size() + data.size());
  html.append(page.substr(0, at)).append(data).append(page.substr(at + kPlace.size()));
  return html;
}

}  // namespace mh
