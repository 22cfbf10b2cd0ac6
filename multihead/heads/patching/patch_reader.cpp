#include "multihead/heads/patching/patch_reader.h"

#include <span>
#include <utility>

#include "multihead/batch/batch.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/heads/patching/word_place.h"
#include "multihead/models/label_head.h"
#include "multihead/nn/list_sites.h"
#include "multihead/tensor/cosine.h"

namespace mh {
namespace {

class WordReader final : public PatchReader {
 public:
  WordReader(const ModelFolder& folder, const PatchTexts& texts) : folder_(folder), texts_(texts) {}

  const Model& model() const override { return *folder_.model; }
  void check(const Sites& sites) const override { model().check(sites); }

  std::vector<AnswerScores> read(Context& context, const PatchText& text, int64_t copies) const override {
    const int32_t tokens[] = {*texts_.answer.token, *texts_.wrong.token};
    const std::vector<float> found =
        word_log_probabilities(model(), context, text, texts_.target, texts_.predicting, tokens, copies);
    std::vector<AnswerScores> scores;
    for (size_t copy = 0; copy < static_cast<size_t>(copies); ++copy)
      scores.push_back({.answer = found[2 * copy], .wrong = found[2 * copy + 1]});
    return scores;
  }

 private:
  const ModelFolder& folder_;
  const PatchTexts& texts_;
};

class LabelReader final : public PatchReader {
 public:
  LabelReader(const ModelFolder& folder, const PatchTexts& texts) : folder_(folder), texts_(texts) {}

  const Model& model() const override { return *folder_.model; }
  void check(const Sites& sites) const override { model().check(sites); }

  std::vector<AnswerScores> read(Context& context, const PatchText& text, int64_t copies) const override {
    const Batch batch = copies_of_text(text, copies);
    const Var states = model().read(context, batch.view(), Sequences());
    const ConstMatrixView logits = model().label_logits(context, states, batch.view()).value();
    std::vector<AnswerScores> scores;
    const LabelHead& head = *model().label_head();
    for (int32_t copy = 0; copy < copies; ++copy) {
      const int64_t row = head.row(batch.ragged, copy, texts_.predicting);
      scores.push_back(
          {.answer = logits(row, *texts_.answer.token), .wrong = logits(row, *texts_.wrong.token)});
    }
    return scores;
  }

 private:
  const ModelFolder& folder_;
  const PatchTexts& texts_;
};

class VectorReader final : public PatchReader {
 public:
  VectorReader(const SentenceModel& model, const PatchQuestion& question, Sites* sites) : model_(model) {
    if (sites != nullptr) check(*sites);
    answers_ = vectors_of_answers(model, std::vector<std::string>{question.answer, question.wrong}, sites);
  }

  const Model& model() const override { return *model_.folder.model; }
  void check(const Sites& sites) const override { model().check(sites, model_.sites()); }

  std::vector<AnswerScores> read(Context& context, const PatchText& text, int64_t copies) const override {
    const Batch batch = copies_of_text(text, copies);
    const ConstMatrixView vectors = model_.vectors(context, batch.view()).value();
    const auto row = [](ConstMatrixView all, int64_t i) {
      return std::span(all.row(i), static_cast<size_t>(all.cols));
    };
    const ConstMatrixView answers = answers_.view();
    std::vector<AnswerScores> scores;
    for (int64_t copy = 0; copy < copies; ++copy)
      scores.push_back({.answer = cosine(row(vectors, copy), row(answers, 0)),
                        .wrong = cosine(row(vectors, copy), row(answers, 1))});
    return scores;
  }

 private:
  const SentenceModel& model_;
  Tensor answers_;  // [2, dimension]
};

}  // namespace

Tensor vectors_of_answers(const SentenceModel& model, std::span<const std::string> answers, Sites* sites) {
  Batch batch;
  for (const TextTokens& answer : sentence_tokens(model, answers, {.from = {.one = "answer"}, .whole = true}))
    batch.add(answer.ids, 0, answer.types);
  Tape tape;
  const std::vector<int64_t> of_no_list(answers.size(), -1);
  ListSites listed(sites, {.texts = of_no_list});
  Context context{.tape = tape, .sites = listed.sites()};
  return copied(model.vectors(context, batch.view()).value());
}

std::unique_ptr<PatchReader> patch_reader(const ModelFolder& folder, const PatchTexts& texts) {
  if (folder.labels) return std::make_unique<LabelReader>(folder, texts);
  return std::make_unique<WordReader>(folder, texts);
}

std::unique_ptr<PatchReader> patch_reader(const SentenceModel& model, const PatchQuestion& question,
                                          Sites* sites) {
  return std::make_unique<VectorReader>(model, question, sites);
}

}  // namespace mh
