#include "multihead/heads/reports/page/page_attribution.h"

#include "multihead/heads/attribution/heads_attribution.h"
#include "multihead/heads/importance/scored_texts.h"
#include "multihead/heads/reports/attribution_json.h"
#include "multihead/heads/reports/page/page_texts.h"

namespace mh {
namespace {

/// Of a long text, what costs a few runs of the model.
std::vector<AttributionMethod> methods_for(size_t tokens) {
  if (tokens <= static_cast<size_t>(kMostFlowTokens)) return {};
  return {AttributionMethod::kAttention, AttributionMethod::kNormWeighted, AttributionMethod::kRollout,
          AttributionMethod::kRelevance, AttributionMethod::kGradientTimesInput};
}

}  // namespace

std::vector<std::string> page_attributions(const ScoredModel& model, const std::vector<PageText>& texts,
                                           const std::string& name, const TextLanguages& languages) {
  const bool vectors = score_kind(model.folder()) == ScoreKind::kVectors;
  if (vectors && texts.size() == 1) return {};  // a cosine is explained, which needs a second text
  // Relevance keeps the weights of all heads and their gradients.
  constexpr PageAnalysis kAttributions{.things = "attributions", .most_tokens = 1024};
  return of_each_text(model, texts, kAttributions, [&](size_t i, size_t tokens) {
    const std::string& text = texts[i].source;
    AttributionOptions options{.methods = methods_for(tokens), .languages = languages};
    if (!vectors) options.target = texts[i].target;
    return attribution_json(
        vectors ? heads_attribution(model.sentences(), text, texts[(i + 1) % texts.size()].source, options)
                : heads_attribution(model.folder(), text, options),
        name, text);
  });
}

}  // namespace mh
