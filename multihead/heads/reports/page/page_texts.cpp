#include "multihead/heads/reports/page/page_texts.h"

#include <fmt/format.h>

#include <utility>

#include "multihead/base/error.h"

namespace mh {
namespace {

std::string reason(const std::string& why) {
  return written(HeadsJson{{"why", why}});
}

}  // namespace

std::vector<std::string> of_each_text(const ScoredModel& model, const std::vector<PageText>& texts,
                                      const PageAnalysis& analysis,
                                      const std::function<std::string(size_t, size_t)>& make) {
  std::vector<std::string> found;
  for (size_t i = 0; i < texts.size(); ++i) {
    size_t tokens = model.folder().source_tokens().encode_ids(texts[i].source).size();
    if (!texts[i].target.empty()) tokens += model.folder().target_tokens().encode_ids(texts[i].target).size();
    if (tokens > analysis.most_tokens) {
      found.push_back(reason(fmt::format("The text has {} tokens, and {} are made of at most {}.{}", tokens,
                                         analysis.things, analysis.most_tokens, analysis.elsewhere)));
      continue;
    }
    try {
      found.push_back(make(i, tokens));
    } catch (const UsageError& error) {
      found.push_back(reason(error.what()));
    } catch (const FormatError& error) {
      found.push_back(reason(error.what()));
    }
  }
  return found;
}

std::vector<std::string> none_of_each_text(const std::vector<PageText>& texts, const std::string& why) {
  return std::vector<std::string>(texts.size(), reason(why));
}

HeadsJson with_short_numbers(HeadsJson json, int digits) {
  if (json.is_number_float()) return std::stod(fmt::format("{:.{}g}", json.get<double>(), digits));
  for (auto& value : json) {
    if (value.is_structured() || value.is_number_float())
      value = with_short_numbers(std::move(value), digits);
  }
  return json;
}

}  // namespace mh
