#include "multihead/heads/patching/patch_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/mask_token.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/heads/patching/word_place.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {
namespace {

/// What the decoder of a classifier reads of a text.
PatchText shifted_text(const EncoderDecoder& model, const PatchText& text) {
  Batch batch;
  batch.add(text.ids, 0);
  PatchText read{.ids = model.shifted(batch.view()), .labels = {"<start>"}};
  read.labels.insert(read.labels.end(), text.labels.begin(), text.labels.end() - 1);
  return read;
}

void check_equally_long(const PatchTexts& texts) {
  const size_t clean = texts.clean.ids.size(), corrupt = texts.corrupt.ids.size();
  if (clean != corrupt) {
    throw UsageError(fmt::format(
        "the clean text has {} tokens and the corrupt one {}; a value is put at the position that "
        "it has: exchange words for others of as many tokens (`multihead tokenize` shows them)",
        clean, corrupt));
  }
  if (clean == 0) throw UsageError("the text has no tokens; give one with words");
}

void refuse_position(const PatchQuestion& question) {
  if (question.position)
    throw UsageError(
        "a token is named for a classifier of tokens alone; of this model the place of the answer is known, "
        "so leave it out");
}

/// Whether both answers must be there.
enum class Answers { kBoth, kEither };

/// Whether both are there and the same.
bool same_token(const PatchTexts& texts) {
  return texts.answer.token && texts.answer.token == texts.wrong.token;
}

void read_word_answers(const WordPlace& place, const PatchQuestion& question, Answers answers,
                       const PatchRemark& remark, PatchTexts& texts) {
  const bool both = answers == Answers::kBoth;
  if (both || !question.answer.empty()) texts.answer = word_answer(place, "answer", question.answer, remark);
  if (both || !question.wrong.empty()) texts.wrong = word_answer(place, "wrong", question.wrong, remark);
  if (same_token(texts)) {
    throw UsageError(
        fmt::format("`answer` and `wrong` both begin with the token {}, so that no run prefers one; take "
                    "words of different first tokens",
                    texts.answer.label));
  }
}

void read_label_answers(const Labels& labels, const PatchQuestion& question, Answers answers,
                        PatchTexts& texts) {
  if (labels.of == LabelsOf::kTokens) {
    const auto tokens = std::ssize(texts.clean.ids);
    if (!question.position || *question.position < 0 || *question.position >= tokens) {
      throw UsageError(fmt::format(
          "this classifier gives labels to tokens, so name one of 0 to {} whose label is asked for "
          "(`multihead tokenize` shows them){}",
          tokens - 1, question.position ? fmt::format("; there is no token {}", *question.position) : ""));
    }
    texts.predicting = *question.position;
    texts.of_token = true;
  }
  const auto answer = [&](const std::string& text) {
    if (answers == Answers::kEither && text.empty()) return PatchAnswer{};
    const int32_t number = labels.number_of(text);
    return PatchAnswer{
        .text = text, .token = number, .label = labels.names[static_cast<size_t>(number)], .tokens = 1};
  };
  texts.answer = answer(question.answer);
  texts.wrong = answer(question.wrong);
  if (same_token(texts)) {
    throw UsageError(fmt::format(
        "`answer` and `wrong` are the same label, {}, so that no run prefers one; take two labels",
        texts.answer.label));
  }
}

void check_same_mask(const ModelFolder& folder, const PatchTexts& texts) {
  const int32_t clean = mask_position(folder, texts.clean, "the clean text"),
                corrupt = mask_position(folder, texts.corrupt, "the corrupt text");
  if (clean != corrupt) {
    throw UsageError(fmt::format(
        "{} is token {} of the clean text and token {} of the corrupt one; put it at the same place",
        mask_token(folder), clean, corrupt));
  }
}

PatchTexts read_texts(const ModelFolder& folder, const PatchQuestion& question, Answers answers,
                      const TextLanguages& languages, const PatchRemark& remark) {
  if (folder.gives_vectors_alone()) {
    throw UsageError(fmt::format(
        "{} holds a {} model that predicts no words; patch it as a sentence model, by its vectors",
        folder.path.string(), folder.model_type));
  }
  const bool translator = translates(folder);
  const LanguagePair pair = language_pair(folder, languages);
  if (!translator) refuse_prefix(question.prefix);
  if (!folder.labels || folder.labels->of != LabelsOf::kTokens) refuse_position(question);
  std::vector<std::string> lines{question.clean};
  if (answers == Answers::kBoth) lines.push_back(question.corrupt);
  std::vector<PatchText> read = read_whole_texts(folder, lines, pair, remark);
  if (answers == Answers::kEither)
    read.push_back(read[0]);  // the corrupt text is the clean one: it is read once
  PatchTexts texts;
  texts.clean = std::move(read[0]);
  texts.corrupt = std::move(read[1]);
  check_equally_long(texts);
  if (folder.labels && !translator) {
    read_label_answers(*folder.labels, question, answers, texts);
    if (const auto* const both = dynamic_cast<const EncoderDecoder*>(folder.model.get())) {
      texts.clean_shifted = shifted_text(*both, texts.clean);
      texts.corrupt_shifted = shifted_text(*both, texts.corrupt);
    }
    return texts;
  }
  if (answers == Answers::kBoth && !translator && !is_causal(folder)) check_same_mask(folder, texts);
  WordPlace place = word_place(folder, question.clean, texts.clean, question.prefix, pair,
                               answers == Answers::kBoth ? "the clean text" : "the given text", remark);
  texts.target = std::move(place.target);
  texts.predicting = place.predicting;
  read_word_answers(place, question, answers, remark, texts);
  return texts;
}

PatchTexts read_texts(const SentenceModel& model, const PatchQuestion& question, const PatchRemark& remark) {
  refuse_prefix(question.prefix);
  refuse_position(question);
  std::vector<TextTokens> read =
      sentence_tokens(model, std::vector<std::string>{question.clean, question.corrupt},
                      {.from = {.one = "text"}, .remark = remark, .whole = true});
  PatchTexts texts{.clean = labelled_text(model.folder.source_tokens(), std::move(read[0])),
                   .corrupt = labelled_text(model.folder.source_tokens(), std::move(read[1])),
                   .answer = {.text = question.answer},
                   .wrong = {.text = question.wrong}};
  check_equally_long(texts);
  return texts;
}

void check_answer_text(const char* field, const std::string& text) {
  if (text.empty())
    throw UsageError(fmt::format(
        "`{}` is missing: this model makes vectors; give the text with whose vector the cosine is", field));
  if (text.find_first_not_of(" \t\n") == std::string::npos)
    throw UsageError(fmt::format("`{}`: '{}' has no tokens; give a text", field, text));
}

/// The question of patching whose clean and corrupt text are this one.
PatchQuestion as_patching(const AnswerQuestion& question) {
  return {.clean = question.text,
          .corrupt = question.text,
          .answer = question.answer,
          .wrong = question.wrong,
          .prefix = question.prefix,
          .position = question.position};
}

AnswerText of_clean_text(PatchTexts texts) {
  AnswerText one{.text = std::move(texts.clean),
                 .shifted = std::move(texts.clean_shifted),
                 .target = std::move(texts.target),
                 .predicting = texts.predicting,
                 .of_token = texts.of_token};
  if (!texts.answer.text.empty()) one.answer = std::move(texts.answer);
  if (!texts.wrong.text.empty()) one.wrong = std::move(texts.wrong);
  return one;
}

}  // namespace

PatchTexts read_patch_texts(const ModelFolder& folder, const PatchQuestion& question,
                            const TextLanguages& languages, const PatchRemark& remark) {
  return read_texts(folder, question, Answers::kBoth, languages, remark);
}

PatchTexts read_patch_texts(const SentenceModel& model, const PatchQuestion& question,
                            const PatchRemark& remark) {
  PatchTexts texts = read_texts(model, question, remark);
  check_answer_text("answer", question.answer);
  check_answer_text("wrong", question.wrong);
  if (question.answer == question.wrong)
    throw UsageError("`answer` and `wrong` are the same text, so that no run prefers one; take two texts");
  return texts;
}

AnswerText read_answer_text(const ModelFolder& folder, const AnswerQuestion& question,
                            const TextLanguages& languages, const PatchRemark& remark) {
  return of_clean_text(read_texts(folder, as_patching(question), Answers::kEither, languages, remark));
}

AnswerText read_answer_text(const SentenceModel& model, const AnswerQuestion& question,
                            const PatchRemark& remark) {
  check_answer_text("answer", question.answer);
  return of_clean_text(read_texts(model, as_patching(question), remark));
}

}  // namespace mh
