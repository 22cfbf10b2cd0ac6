// What a page has of each of its texts, as JSON: an analysis, or the reason why there is none.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/reports/json_parts.h"
#include "multihead/heads/reports/page/heads_page.h"

namespace mh {

/// An analysis that is made of texts of so many tokens at most.
struct PageAnalysis {
  const char* things;  // "attributions": what a longer text has none of
  size_t most_tokens;
  const char* elsewhere = "";  // a sentence that says where a longer text's is found
};

/// By text what `make` gives, of the text's number and its tokens; {"why": "..."} of a text that is too long, and where `make` throws
/// UsageError or FormatError: the text has one token or more than the model reads, or the model is of a kind that the analysis does not know.
std::vector<std::string> of_each_text(const ScoredModel& model, const std::vector<PageText>& texts,
                                      const PageAnalysis& analysis,
                                      const std::function<std::string(size_t text, size_t tokens)>& make);
/// {"why": why} for each text.
std::vector<std::string> none_of_each_text(const std::vector<PageText>& texts, const std::string& why);

/// Its numbers in `digits` significant digits: a page has many, and shows three.
HeadsJson with_short_numbers(HeadsJson json, int digits);

}  // namespace mh
