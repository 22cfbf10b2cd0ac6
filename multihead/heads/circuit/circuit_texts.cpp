#include "multihead/heads/circuit/circuit_texts.h"

#include <algorithm>
#include <utility>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/pool_rows.h"
#include "multihead/autograd/scores.h"
#include "multihead/folders/language_codes.h"
#include "multihead/heads/patching/patch_reader.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/models/label_head.h"
#include "multihead/models/vocabulary_head.h"

namespace mh {
namespace {

Var less(Tape& tape, Var a, Var b) {
  return ops::add(tape, a, ops::scale(tape, b, -1.0f));
}

/// The number of the answer, or of the wrong one, of each text.
std::vector<int32_t> tokens_of(std::span<const CircuitTexts::Text> texts, PatchAnswer PatchTexts::*which) {
  std::vector<int32_t> tokens;
  for (const CircuitTexts::Text& text : texts) tokens.push_back(*(text.pair->texts.*which).token);
  return tokens;
}

}  // namespace

PatchScore CircuitTexts::score() const {
  if (model_.folder().gives_vectors_alone()) return PatchScore::kCosine;
  return model_.folder().labels ? PatchScore::kLogit : PatchScore::kLogProbability;
}

void CircuitTexts::check(const Sites& sites) const {
  if (model_.folder().gives_vectors_alone()) return model().check(sites, model_.sentences().sites());
  model().check(sites);
}

CircuitPair CircuitTexts::read(const PatchQuestion& question, const TextLanguages& languages,
                               const PatchRemark& remark, Sites* sites) const {
  if (!model_.folder().gives_vectors_alone())
    return {.texts = read_patch_texts(model_.folder(), question, languages, remark)};
  language_pair(model_.folder(), languages);  // it has none
  const SentenceModel& sentences = model_.sentences();
  CircuitPair pair{.texts = read_patch_texts(sentences, question, remark)};
  pair.vectors =
      vectors_of_answers(sentences, std::vector<std::string>{question.answer, question.wrong}, sites);
  return pair;
}

CircuitTexts::Batches CircuitTexts::batches(std::span<const Text> texts) {
  Batches found;
  for (size_t i = 0; i < texts.size(); ++i) {
    const PatchTexts& pair = texts[i].pair->texts;
    const PatchText& text = texts[i].corrupt ? pair.corrupt : pair.clean;
    found.text.add(text.ids, static_cast<int64_t>(i), text.types);
    if (!pair.target.ids.empty()) found.target.add(pair.target.ids, static_cast<int64_t>(i));
  }
  return found;
}

Var CircuitTexts::scores(Context& context, std::span<const Text> texts, const Batches& batches) const {
  switch (score()) {
    case PatchScore::kLogProbability:
      return of_words(context, texts, batches);
    case PatchScore::kLogit:
      return of_labels(context, texts, batches);
    case PatchScore::kCosine:
      break;
  }
  return of_vectors(context, texts, batches);
}

Var CircuitTexts::of_words(Context& context, std::span<const Text> texts, const Batches& batches) const {
  const bool translator = translates(model_.folder());
  const Batch& predicts = translator ? batches.target : batches.text;
  const Var states =
      model().read(context, batches.text.view(), translator ? batches.target.view() : Sequences());
  std::vector<int32_t> rows;
  for (size_t i = 0; i < texts.size(); ++i)
    rows.push_back(predicts.ragged.begin(static_cast<int32_t>(i)) + texts[i].pair->texts.predicting);
  Tape& tape = context.tape;
  const Var read = model().word_states(context, take_rows(tape, states, rows));
  const auto logits_of = [&](PatchAnswer PatchTexts::*which) {
    return model().vocabulary().logits_of(tape, read, tokens_of(texts, which));
  };
  return less(tape, logits_of(&PatchTexts::answer), logits_of(&PatchTexts::wrong));
}

Var CircuitTexts::of_labels(Context& context, std::span<const Text> texts, const Batches& batches) const {
  const Var states = model().read(context, batches.text.view(), Sequences());
  const Var logits = model().label_logits(context, states, batches.text.view());
  std::vector<int32_t> rows;
  for (size_t i = 0; i < texts.size(); ++i) {
    rows.push_back(static_cast<int32_t>(model().label_head()->row(
        batches.text.ragged, static_cast<int32_t>(i), texts[i].pair->texts.predicting)));
  }
  Tape& tape = context.tape;
  return less(tape, ops::pick(tape, logits, rows, tokens_of(texts, &PatchTexts::answer)),
              ops::pick(tape, logits, rows, tokens_of(texts, &PatchTexts::wrong)));
}

Var CircuitTexts::of_vectors(Context& context, std::span<const Text> texts, const Batches& batches) const {
  Tape& tape = context.tape;
  const Var vectors = model_.sentences().vectors(context, batches.text.view());
  const auto cosines = [&](int64_t answer) {
    const MatrixView others = tape.arena().matrix<float>(vectors.rows(), vectors.cols());
    for (size_t i = 0; i < texts.size(); ++i)
      std::copy_n(texts[i].pair->vectors.view().row(answer), others.cols,
                  others.row(static_cast<int64_t>(i)));
    return ops::cosines(tape, vectors, tape.constant(others));
  };
  return less(tape, cosines(0), cosines(1));
}

}  // namespace mh
