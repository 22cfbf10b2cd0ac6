// What the stream of a page's texts says after each layer (heads/lens/heads_lens.h).
#pragma once

#include <string>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/reports/page/heads_page.h"
#include "multihead/nn/sites.h"
#include "multihead/text/text_languages.h"

namespace mh {

/// By text, what lens_json() gives of it, without ids, entropies and divergences and in numbers of three digits, or {"why": "..."} where
/// it has none. The vectors of an encoder that predicts no words are compared with that of the page's next text, of the last with that
/// of the first.
/// name: what the JSON calls the model; languages: of a translator of many; sites: of the page's run, called with the texts' numbers.
std::vector<std::string> page_lenses(const ScoredModel& model, const std::vector<PageText>& texts,
                                     const std::string& name, const TextLanguages& languages, Sites* sites);

}  // namespace mh
