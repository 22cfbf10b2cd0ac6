#include "multihead/heads/reports/page/page_attribution.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/heads/attribution/heads_attribution.h"
#include "multihead/heads/importance/scored_texts.h"
#include "multihead/heads/reports/attribution_json.h"
#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

/// Relevance keeps the weights of all heads and their gradients: at most so many tokens.
constexpr size_t kMostTokens = 1024;

std::string reason(const std::string& why) {
  return written(HeadsJson{{"why", why}});
}

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
  std::vector<std::string> found;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string& text = texts[i].source;
    size_t tokens = model.folder().source_tokens().encode_ids(text).size();
    if (!texts[i].target.empty()) tokens += model.folder().target_tokens().encode_ids(texts[i].target).size();
    if (tokens > kMostTokens) {
      found.push_back(reason(fmt::format("The text has {} tokens, and attributions are made of at most {}.",
                                         tokens, kMostTokens)));
      continue;
    }
    AttributionOptions options{.methods = methods_for(tokens), .languages = languages};
    try {
      if (!vectors) options.target = texts[i].target;
      found.push_back(attribution_json(
          vectors ? heads_attribution(model.sentences(), text, texts[(i + 1) % texts.size()].source, options)
                  : heads_attribution(model.folder(), text, options),
          name, text));
    } catch (const UsageError& error) {  // a text of one token; heads whose norms have no meaning
      found.push_back(reason(error.what()));
    }
  }
  return found;
}

std::vector<std::string> no_attributions(const std::vector<PageText>& texts, const std::string& why) {
  return std::vector<std::string>(texts.size(), reason(why));
}

}  // namespace mh
