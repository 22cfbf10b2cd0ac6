#include "multihead/heads/patching/patch_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/mask_token.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/heads/sites/answer_word.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {
namespace {

PatchText labelled_text(const Tokenizer& tokenizer, TextTokens tokens) {
  PatchText text{.ids = std::move(tokens.ids), .types = std::move(tokens.types)};
  for (const int32_t id : text.ids) text.labels.push_back(tokenizer.shown(id));
  return text;
}

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
  if (clean == 0) throw UsageError("the clean and the corrupt text have no tokens; give texts");
}

void refuse_prefix(const PatchQuestion& question) {
  if (!question.prefix.empty())
    throw UsageError(
        "`prefix`: this model translates nothing, so that no target begins with it; leave it out");
}

void refuse_position(const PatchQuestion& question) {
  if (question.position)
    throw UsageError(
        "a token is named for a classifier of tokens alone; of this model the place of the answer is known, "
        "so leave it out");
}

PatchAnswer patch_answer(const AnswerPlace& place, const char* field, const std::string& text,
                         const PatchRemark& remark) {
  const AnswerWord word = answer_word(place, field, text, remark);
  return {.text = text, .token = word.token, .label = word.label, .tokens = word.tokens};
}

/// Whether both answers must be there.
enum class Answers { kBoth, kEither };

/// Whether both are there and the same.
bool same_token(const PatchTexts& texts) {
  return texts.answer.token && texts.answer.token == texts.wrong.token;
}

void read_word_answers(const AnswerPlace& place, const PatchQuestion& question, Answers answers,
                       const PatchRemark& remark, PatchTexts& texts) {
  const bool both = answers == Answers::kBoth;
  if (both || !question.answer.empty()) texts.answer = patch_answer(place, "answer", question.answer, remark);
  if (both || !question.wrong.empty()) texts.wrong = patch_answer(place, "wrong", question.wrong, remark);
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

/// The one mask of a text.
int32_t mask_position(const std::vector<int32_t>& ids, int32_t mask, const std::string& token,
                      const char* which) {
  const auto masks = std::count(ids.begin(), ids.end(), mask);
  if (masks != 1) {
    throw UsageError(fmt::format("the {} text has {} masks; write {} once, where the answer is missing",
                                 which, masks, token));
  }
  return static_cast<int32_t>(std::find(ids.begin(), ids.end(), mask) - ids.begin());
}

void read_masks(const ModelFolder& folder, const PatchQuestion& question, Answers answers,
                const PatchRemark& remark, PatchTexts& texts) {
  const Tokenizer& tokenizer = folder.source_tokens();
  const std::string mask = mask_token(folder);
  const int32_t id = tokenizer.id_of(mask).value();
  const bool one = answers == Answers::kEither;
  const int32_t clean = mask_position(texts.clean.ids, id, mask, one ? "given" : "clean"),
                corrupt = mask_position(texts.corrupt.ids, id, mask, one ? "given" : "corrupt");
  if (clean != corrupt) {
    throw UsageError(fmt::format(
        "{} is token {} of the clean text and token {} of the corrupt one; put it at the same place", mask,
        clean, corrupt));
  }
  texts.predicting = clean;
  const size_t at = question.clean.find(mask);
  if (at == std::string::npos) throw UsageError(fmt::format("the clean text has no {}", mask));
  read_word_answers({.tokenizer = tokenizer,
                     .before = question.clean.substr(0, at),
                     .after = question.clean.substr(at + mask.size()),
                     .mask = mask},
                    question, answers, remark, texts);
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
  if (!translator) refuse_prefix(question);
  if (!folder.labels || folder.labels->of != LabelsOf::kTokens) refuse_position(question);
  const auto longest = static_cast<size_t>(folder.model->facts().max_positions);
  std::vector<TextTokens> read = read_lines(
      TextReader(
          folder,
          {.longest = longest, .side = translator ? TextSide::kSource : TextSide::kOnly, .languages = pair}),
      std::vector<std::string>{question.clean, question.corrupt},
      {.from = {.one = "text"}, .remark = remark, .whole = true});
  PatchTexts texts;
  if (translator) {
    const std::vector<int32_t> end = source_end(folder, pair);
    for (TextTokens& tokens : read) tokens.ids.insert(tokens.ids.end(), end.begin(), end.end());
  }
  texts.clean = labelled_text(folder.source_tokens(), std::move(read[0]));
  texts.corrupt = labelled_text(folder.source_tokens(), std::move(read[1]));
  check_equally_long(texts);
  if (translator) {
    const Tokenizer& tokenizer = folder.target_tokens();
    const TextReader reader(folder, {.longest = longest, .side = TextSide::kTarget, .languages = pair});
    texts.target =
        labelled_text(tokenizer, read_lines(reader, std::vector<std::string>{question.prefix},
                                            {.from = {.one = "prefix"}, .remark = remark, .whole = true})[0]);
    texts.target.ids.insert(texts.target.ids.begin(), folder.translator().config().decoder_start_id);
    texts.target.labels.insert(texts.target.labels.begin(), "<start>");
    texts.predicting = static_cast<int32_t>(texts.target.ids.size()) - 1;
    read_word_answers({.tokenizer = tokenizer, .before = question.prefix}, question, answers, remark, texts);
  } else if (folder.labels) {
    read_label_answers(*folder.labels, question, answers, texts);
    if (const auto* const both = dynamic_cast<const EncoderDecoder*>(folder.model.get())) {
      texts.clean_shifted = shifted_text(*both, texts.clean);
      texts.corrupt_shifted = shifted_text(*both, texts.corrupt);
    }
  } else if (is_causal(folder)) {
    texts.predicting = static_cast<int32_t>(texts.clean.ids.size()) - 1;
    read_word_answers({.tokenizer = folder.source_tokens(), .before = question.clean}, question, answers,
                      remark, texts);
  } else {
    read_masks(folder, question, answers, remark, texts);
  }
  return texts;
}

PatchTexts read_texts(const SentenceModel& model, const PatchQuestion& question, const PatchRemark& remark) {
  refuse_prefix(question);
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
