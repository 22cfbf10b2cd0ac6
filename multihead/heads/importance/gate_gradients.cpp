#include "multihead/heads/importance/gate_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/heads/site_values.h"

namespace mh {
namespace {

/// The vectors of the texts after those of a batch: row s + 1 for row s. The batch has one text more, whose own vector stands
/// for its next one: the gradient of that cosine is 0.
Tensor next_vectors(ConstMatrixView vectors) {
  Tensor next(vectors.rows, vectors.cols);
  for (int64_t s = 0; s < vectors.rows; ++s) {
    const float* const from = vectors.row(std::min(s + 1, vectors.rows - 1));
    std::copy_n(from, vectors.cols, next.view().row(s));
  }
  return next;
}

}  // namespace

GateGradients gate_gradients(const SentenceModel& model, const ScoredTexts& texts,
                             const GateGradientOptions& options) {
  const bool vectors = texts.kind == ScoreKind::kVectors;
  const auto count = std::ssize(texts.texts);
  if (vectors && count < 2)
    throw UsageError(
        "a text's score is the cosine of its vector to the next text's; give at least two lines of text");
  GateGradients found;
  const auto attentions = model.folder.model->attentions();
  for (const auto& [name, heads] : attentions) {
    for (int h = 0; h < heads; ++h) found.heads.push_back({name, h});
  }
  found.gradients = Tensor(count, std::ssize(found.heads));
  VocabularyScratch scratch;
  for (std::vector<int64_t> numbers : plan_scored(texts, options.max_batch_tokens)) {
    const auto own = std::ssize(numbers);
    if (vectors) numbers.push_back((numbers.back() + 1) % count);
    SiteValues values;
    values.watch("*.gates");
    SitesInTurn sites(options.sites, values);
    const ScoredBatch batch = scored_batch(*model.folder.model, texts, numbers);
    ScorePass pass(model, texts.kind, batch, {.sites = &sites, .mode = Tape::Mode::kRecordValues});
    const Tensor next = vectors ? next_vectors(pass.vectors()) : Tensor();
    const Var sum = pass.sum(next.view(), scratch);
    found.score += static_cast<double>(sum.value()(0, 0)) - (vectors ? 1 : 0);  // the last one's to itself
    pass.tape().backward(sum);
    int64_t column = 0;
    for (const auto& [name, heads] : attentions) {
      const ConstMatrixView gradient = values.gradient(name + ".gates");
      for (int64_t s = 0; s < own; ++s)
        std::copy_n(gradient.row(s), heads, &found.gradients.view()(numbers[static_cast<size_t>(s)], column));
      column += heads;
    }
    if (options.progress) options.progress(numbers[static_cast<size_t>(own) - 1] + 1);
  }
  require_finite(found.gradients.view(), "gradients of the heads' gates");
  return found;
}

}  // namespace mh
