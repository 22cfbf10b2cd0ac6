#include "multihead/heads/reports/page/page_contributions.h"

#include <utility>

#include "multihead/heads/attribution/explained_text.h"
#include "multihead/heads/importance/scored_texts.h"
#include "multihead/heads/reports/contributions_json.h"
#include "multihead/heads/reports/page/page_texts.h"
#include "multihead/heads/sites/inspected_texts.h"

namespace mh {
namespace {

constexpr int64_t kAllHeads = 1'000'000;  // the most that ContributionOptions::sources takes

/// The tokens of one side, as the model reads them before what is explained.
PatchText text_of_side(const std::vector<ReadToken>& tokens, TokenSide side) {
  PatchText text;
  for (const ReadToken& token : tokens) {
    if (token.side != side) continue;
    text.ids.push_back(token.id);
    text.labels.push_back(token.label);
  }
  return text;
}

/// What attribution explains, as a question about the word or label that comes up there.
AnswerText question_of(const ModelFolder& folder, const AttributionReport& explained) {
  AnswerText asked{.text = text_of_side(explained.tokens, TokenSide::kSource)};
  PatchText target = text_of_side(explained.tokens, TokenSide::kTarget);
  const bool of_label = !explained.label.empty();
  const std::string& name = of_label ? explained.label : explained.explained;
  asked.answer = {.text = name, .token = explained.explained_id, .label = name, .tokens = 1};
  if (of_label) {
    asked.shifted = std::move(target);  // what the decoder of a classifier reads
    asked.of_token = explained.position >= 0;
    asked.predicting = asked.of_token ? explained.position : 0;
  } else {
    asked.target = std::move(target);
    // A causal model is asked behind what it has read.
    asked.predicting = is_causal(folder) ? explained.position - 1 : explained.position;
  }
  return asked;
}

}  // namespace

ContributionReport page_contribution(const ScoredModel& model, const PageText& text,
                                     const std::string& second, const TextLanguages& languages) {
  const ModelFolder& folder = model.folder();
  const ContributionOptions all_heads{.sources = kAllHeads, .languages = languages};
  if (score_kind(folder) == ScoreKind::kVectors)
    return heads_contributions(model.sentences(), {.text = text.source, .answer = second}, all_heads);
  const ExplainedText explained(folder, text.source, {.target = text.target, .languages = languages});
  ContributionOptions options = all_heads;
  options.centred = !folder.labels;
  return heads_contributions(folder, question_of(folder, explained.known()), options);
}

std::vector<std::string> page_contributions(const ScoredModel& model, const std::vector<PageText>& texts,
                                            const std::string& name, const TextLanguages& languages) {
  if (score_kind(model.folder()) == ScoreKind::kVectors && texts.size() == 1) return {};
  // The weights of all heads are kept.
  constexpr PageAnalysis kContributions{.things = "contributions", .most_tokens = 1024};
  return of_each_text(model, texts, kContributions, [&](size_t i, size_t) {
    ContributionReport found =
        page_contribution(model, texts[i], texts[(i + 1) % texts.size()].source, languages);
    for (Contribution& part : found.parts) part.positions.clear();
    constexpr int kDigits = 4;
    return written(with_short_numbers(HeadsJson::parse(contributions_json(found, name)), kDigits));
  });
}

}  // namespace mh
