#include "multihead/heads/importance/scored_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/batch/check_ids.h"
#include "multihead/folders/mask_token.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/importance/score_pass.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/models/label_head.h"

namespace mh {
namespace {

/// Every row predicts the token after it: all tokens of a text but the first are predicted.
void predict_next(ScoredText& text) {
  for (size_t i = 1; i < text.ids.size(); ++i) {
    text.rows.push_back(static_cast<int32_t>(i - 1));
    text.tokens.push_back(text.ids[i]);
  }
}

void predict_target(ScoredText& text, int32_t end) {
  text.tokens = text.target;
  text.tokens.push_back(end);
  text.rows.resize(text.tokens.size());
  std::iota(text.rows.begin(), text.rows.end(), 0);
}

/// Puts masks in the places of some words. special: the places of special tokens.
void mask_words(ScoredText& text, const std::vector<std::pair<int32_t, int32_t>>& offsets, int32_t mask,
                double share, Random& random) {
  std::vector<int32_t> places;
  for (size_t i = 0; i < text.ids.size(); ++i) {
    if (offsets[i] != std::pair(0, 0)) places.push_back(static_cast<int32_t>(i));
  }
  if (places.empty()) return;
  random.shuffle(places);
  const double wanted = std::round(share * static_cast<double>(places.size()));
  places.resize(std::clamp<size_t>(static_cast<size_t>(wanted), 1, places.size()));
  std::sort(places.begin(), places.end());
  for (const int32_t place : places) {
    text.rows.push_back(place);
    text.tokens.push_back(std::exchange(text.ids[static_cast<size_t>(place)], mask));
  }
}

/// The rows that get labels: of a text's the first stands for the text. offsets: of the tokens.
void predict_labels(ScoredText& text, const std::vector<std::pair<int32_t, int32_t>>& offsets,
                    bool of_tokens) {
  for (size_t i = 0; i < text.ids.size(); ++i) {
    if (of_tokens && offsets[i] == std::pair(0, 0)) continue;  // a special token
    text.rows.push_back(static_cast<int32_t>(i));
    if (!of_tokens) return;
  }
}

/// Gives each row its label: the one that is asked for, or the one of the largest logit.
void choose_labels(const ModelFolder& folder, ScoredTexts& all, const ScoredTextsOptions& options) {
  const LabelHead& head = *folder.model->label_head();
  for (ScoredText& text : all.texts) text.tokens.assign(text.rows.size(), 0);
  if (!options.label.empty()) {
    const int32_t label = folder.labels->number_of(options.label);
    for (ScoredText& text : all.texts) std::fill(text.tokens.begin(), text.tokens.end(), label);
    return;
  }
  Tape tape;
  Context context{.tape = tape};
  for (const std::vector<int64_t>& numbers : plan_scored(all, options.read.observe.max_batch_tokens)) {
    tape.clear();
    Batch batch;
    for (const int64_t n : numbers)
      batch.add(all.texts[static_cast<size_t>(n)].ids, n, all.texts[static_cast<size_t>(n)].types);
    const Var states = folder.model->read(context, batch.view(), {});
    const ConstMatrixView logits = folder.model->label_logits(context, states, batch.view()).value();
    for (size_t s = 0; s < numbers.size(); ++s) {
      ScoredText& text = all.texts[static_cast<size_t>(numbers[s])];
      for (size_t i = 0; i < text.rows.size(); ++i) {
        const int64_t row = head.row(batch.ragged, static_cast<int32_t>(s), text.rows[i]);
        const float* const first = logits.row(row);
        text.tokens[i] = static_cast<int32_t>(std::max_element(first, first + logits.cols) - first);
      }
    }
  }
}

}  // namespace

ScoreKind score_kind(const ModelFolder& folder) {
  if (translates(folder)) return ScoreKind::kTranslation;
  if (folder.labels) return ScoreKind::kLabels;
  if (!folder.model->predicts()) return ScoreKind::kVectors;
  return is_causal(folder) ? ScoreKind::kNextTokens : ScoreKind::kMaskedWords;
}

int64_t ScoredText::size() const {
  return std::ssize(ids) + std::ssize(target);
}

int64_t ScoredTexts::predictions() const {
  int64_t sum = 0;
  for (const ScoredText& text : texts) sum += std::ssize(text.tokens);
  return sum;
}

ScoredTexts read_scored_texts(const ModelFolder& folder, HeadsCorpus& corpus,
                              const ScoredTextsOptions& options) {
  if (!(options.masked > 0 && options.masked <= 1))
    throw UsageError(
        fmt::format("`masked` is {}; expected a share above 0 and at most 1 of the tokens", options.masked));
  if (!options.label.empty() && !folder.labels)
    throw UsageError(fmt::format("`label`: this model gives no labels; leave '{}' out", options.label));
  const ModelFacts facts = folder.model->facts();
  ScoredTexts found{.kind = score_kind(folder)};
  std::optional<int32_t> mask;
  if (found.kind == ScoreKind::kMaskedWords) mask = folder.source_tokens().id_of(mask_token(folder));
  Random random(options.seed);
  LeftOutLines silent;  // of which nothing can be predicted
  CorpusReader reader(folder, corpus,
                      {.sites = options.read.observe.sites,
                       .languages = options.read.languages,
                       .remark = options.read.remark});
  while (std::optional<CorpusBlock> block = reader.next()) {
    check_ids(block->source.ids, {.what = "source",
                                  .longest = facts.max_positions,
                                  .vocabulary = facts.vocabulary_read(),
                                  .may_be_empty = false});
    check_ids(block->target.ids, {.what = "target",
                                  .longest = facts.max_positions - 1,  // the start token comes before
                                  .vocabulary = facts.vocabulary});
    for (size_t i = 0; i < block->source.ids.size(); ++i) {
      ScoredText text{.number = block->lines[i] - 1, .ids = std::move(block->source.ids[i])};
      if (!block->source.types.empty()) text.types = std::move(block->source.types[i]);
      switch (found.kind) {
        case ScoreKind::kTranslation:
          text.target = std::move(block->target.ids[i]);
          predict_target(text, facts.eos_id);
          break;
        case ScoreKind::kNextTokens:
          predict_next(text);
          break;
        case ScoreKind::kMaskedWords:
          mask_words(text, block->source.offsets[i], *mask, options.masked, random);
          break;
        case ScoreKind::kLabels:
          predict_labels(text, block->source.offsets[i], folder.model->label_head()->of_tokens());
          break;
        case ScoreKind::kVectors:
          break;
      }
      if (found.kind != ScoreKind::kVectors && text.rows.empty()) {
        silent.add(block->lines[i]);
        continue;
      }
      found.texts.push_back(std::move(text));
    }
  }
  silent.tell(found.kind == ScoreKind::kNextTokens ? "of one token, which nothing predicts"
              : found.kind == ScoreKind::kLabels   ? "without a token that gets a label"
                                                   : "without a word that could be masked",
              options.read.remark);
  found.read = {.sentences = std::ssize(found.texts), .targets = reader.targets_read()};
  if (found.texts.empty())
    throw FormatError(
        fmt::format("{} has no line of which something can be scored; a causal model needs "
                    "lines of at least two tokens",
                    corpus.name()));
  if (found.kind == ScoreKind::kLabels) choose_labels(folder, found, options);
  return found;
}

}  // namespace mh
