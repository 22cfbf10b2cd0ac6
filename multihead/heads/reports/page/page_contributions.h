// What each head and layer adds to what the model says of a page's texts (heads/contributions/heads_contributions.h).
#pragma once

#include <string>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/contributions/heads_contributions.h"
#include "multihead/heads/reports/page/heads_page.h"
#include "multihead/text/text_languages.h"

namespace mh {

/// The question that page_attributions() asks of a text (page_attribution.h): of words the logit of the last one, less the mean of all
/// logits; of a classifier the logit of its best label; of an encoder that predicts no words the cosine to `second`. Of all heads the
/// tokens that they read. Throws as heads_contributions() and heads_attribution() do.
ContributionReport page_contribution(const ScoredModel& model, const PageText& text,
                                     const std::string& second, const TextLanguages& languages);
/// By text, what contributions_json() gives of it, without the positions and in numbers of four digits, or {"why": "..."} where it has
/// none. A single text of an encoder that predicts no words has none: {}.
/// name: what the JSON calls the model; languages: of a translator of many.
std::vector<std::string> page_contributions(const ScoredModel& model, const std::vector<PageText>& texts,
                                            const std::string& name, const TextLanguages& languages);

}  // namespace mh
