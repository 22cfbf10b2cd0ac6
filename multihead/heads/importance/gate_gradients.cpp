#include "multihead/heads/importance/gate_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/heads/sites/site_values.h"

namespace mh {
namespace {

/// The vectors of the texts after those of a batch: row s + 1 for row s, and `after` [1, d] for the last one.
Tensor next_vectors(ConstMatrixView vectors, ConstMatrixView after) {
  Tensor next(vectors.rows, vectors.cols);
  for (int64_t s = 0; s < vectors.rows; ++s)
    std::copy_n(s + 1 < vectors.rows ? vectors.row(s + 1) : after.row(0), vectors.cols, next.view().row(s));
  return next;
}

/// [1, d], or nothing where texts have other scores.
Tensor vector_of_first(const ScoredModel& model, const ScoredTexts& texts, Sites* sites) {
  if (texts.kind != ScoreKind::kVectors) return {};
  const std::vector<int64_t> first = {0};
  const ScoredBatch batch = scored_batch(*model.folder().model, texts, first);
  Tape tape;
  return copied(ScorePass(tape, model, texts.kind, batch, {.sites = sites}).vectors());
}

}  // namespace

GateGradients gate_gradients(const ScoredModel& model, const ScoredTexts& texts,
                             const GateGradientOptions& options) {
  const bool vectors = texts.kind == ScoreKind::kVectors;
  const auto count = std::ssize(texts.texts);
  if (vectors && count < 2)
    throw UsageError(
        "a text's score is the cosine of its vector to the next text's; give at least two lines of text");
  GateGradients found;
  const auto attentions = model.folder().model->attentions();
  for (const auto& [name, heads, place] : attentions) {
    for (int h = 0; h < heads; ++h) found.heads.push_back({name, h});
  }
  found.gradients = Tensor(count, std::ssize(found.heads));
  VocabularyScratch scratch;
  Tape tape(Tape::Mode::kRecordValues);
  std::vector<std::vector<int64_t>> plan =
      plan_scored(texts, std::min(options.max_batch_tokens, kMostGradientTokens));
  // From the last batch to the first: the vector of the text after a batch is then known.
  std::reverse(plan.begin(), plan.end());
  Tensor after = vector_of_first(model, texts, options.sites);
  int64_t done = 0;
  for (const std::vector<int64_t>& numbers : plan) {
    SiteValues values;
    values.watch("*.gates");
    SitesInTurn sites(options.sites, values);
    const ScoredBatch batch = scored_batch(*model.folder().model, texts, numbers);
    ScorePass pass(tape, model, texts.kind, batch, {.sites = &sites});
    const Tensor next = vectors ? next_vectors(pass.vectors(), after.view()) : Tensor();
    if (vectors) after = copied(pass.vectors().rows_between(0, 1));
    const Var sum = pass.sum(next.view(), scratch);
    found.score += static_cast<double>(sum.value()(0, 0));
    tape.backward(sum);
    int64_t column = 0;
    for (const auto& [name, heads, place] : attentions) {
      const ConstMatrixView gradient = values.gradient(name + ".gates");
      for (int64_t s = 0; s < std::ssize(numbers); ++s)
        std::copy_n(gradient.row(s), heads, &found.gradients.view()(numbers[static_cast<size_t>(s)], column));
      column += heads;
    }
    done += std::ssize(numbers);
    if (options.progress) options.progress(done);
  }
  require_finite(found.gradients.view(), "gradients of the heads' gates");
  return found;
}

}  // namespace mh
