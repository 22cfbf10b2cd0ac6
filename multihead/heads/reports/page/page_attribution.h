// Which tokens of a page's texts count for what the model says of them (heads/attribution/heads_attribution.h).
#pragma once

#include <string>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/reports/page/heads_page.h"
#include "multihead/text/text_languages.h"

namespace mh {

/// By text, what attribution_json() gives, or {"why": "..."} where it has none. Explained is the log-probability of the text's last word, or
/// of the translation's; of an encoder that predicts no words the cosine to the page's next text, of the last to the first; a single text of it has none: {}. Texts
/// of more than kMostFlowTokens tokens have the methods that run the model a few times only.
/// name: what the JSON calls the model; languages: of a translator of many.
std::vector<std::string> page_attributions(const ScoredModel& model, const std::vector<PageText>& texts,
                                           const std::string& name, const TextLanguages& languages);

}  // namespace mh
