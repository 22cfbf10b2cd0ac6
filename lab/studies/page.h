// The answer in a minute: docs/answers/STUDY.md, whose words and picture `multihead study` begins with. The sentences and
// figures in it are those of the published evidence (scripts/answers).
#pragma once

#include <string>
#include <string_view>

namespace mh {

/// The page of a study in lines of 80 columns, its picture drawn with characters; empty when it has none.
std::string page_for_terminal(std::string_view study);

/// The Markdown that the pages use: headings, paragraphs, lists, tables, code, links, one picture. The links become their
/// text, the picture becomes `picture`.
std::string markdown_for_terminal(std::string_view page, const std::string& picture);

}  // namespace mh
