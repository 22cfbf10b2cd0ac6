#include "multihead/heads/patching/word_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/mask_token.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/next_words.h"

namespace mh {
namespace {

/// log p of the tokens in the place of masks: each of these rows alone is what the output layer reads.
std::vector<float> of_masks(const Model& model, const Context& context, ConstMatrixView states,
                            const std::vector<int32_t>& mask_rows, int32_t predicting,
                            const std::vector<int32_t>& tokens) {
  const auto copies = std::ssize(mask_rows);
  Tensor masks(copies, states.cols);
  Ragged one_each;
  for (int64_t copy = 0; copy < copies; ++copy) {
    std::copy_n(states.row(mask_rows[static_cast<size_t>(copy)]), masks.cols(), masks.view().row(copy));
    one_each.add(1);
  }
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < std::ssize(tokens); ++i)
    rows.push_back(static_cast<int32_t>(i * copies / std::ssize(tokens)));
  const std::vector<int32_t> positions(static_cast<size_t>(copies), predicting);
  const Var before = model.word_states(context, context.tape.constant(masks.view()));
  VocabularyScratch scratch;
  return NextWords(model.vocabulary(), context, before,
                   {.offsets = one_each.offsets(), .positions = positions})
      .log_probabilities(rows, tokens, scratch);
}

}  // namespace

PatchText labelled_text(const Tokenizer& tokenizer, TextTokens tokens) {
  PatchText text{.ids = std::move(tokens.ids), .types = std::move(tokens.types)};
  for (const int32_t id : text.ids) text.labels.push_back(tokenizer.shown(id));
  return text;
}

std::vector<PatchText> read_whole_texts(const ModelFolder& folder, const std::vector<std::string>& texts,
                                        const LanguagePair& languages, const PatchRemark& remark) {
  const bool translator = translates(folder);
  const auto longest = static_cast<size_t>(folder.model->facts().max_positions);
  std::vector<TextTokens> read =
      read_lines(TextReader(folder, {.longest = longest,
                                     .side = translator ? TextSide::kSource : TextSide::kOnly,
                                     .languages = languages}),
                 texts, {.from = {.one = "text"}, .remark = remark, .whole = true});
  std::vector<PatchText> all;
  for (TextTokens& tokens : read) {
    if (translator) {
      const std::vector<int32_t> end = source_end(folder, languages);
      tokens.ids.insert(tokens.ids.end(), end.begin(), end.end());
    }
    all.push_back(labelled_text(folder.source_tokens(), std::move(tokens)));
  }
  return all;
}

int32_t mask_position(const ModelFolder& folder, const PatchText& read, const std::string& called) {
  const std::string mask = mask_token(folder);
  const int32_t id = folder.source_tokens().id_of(mask).value();
  const auto masks = std::count(read.ids.begin(), read.ids.end(), id);
  if (masks != 1) {
    throw UsageError(
        fmt::format("{} has {} masks; write {} once, where the answer is missing", called, masks, mask));
  }
  return static_cast<int32_t>(std::find(read.ids.begin(), read.ids.end(), id) - read.ids.begin());
}

WordPlace word_place(const ModelFolder& folder, const std::string& text, const PatchText& read,
                     const std::string& prefix, const LanguagePair& languages, const std::string& called,
                     const PatchRemark& remark) {
  if (translates(folder)) {
    WordPlace place{.word = {.tokenizer = folder.target_tokens(), .before = prefix}};
    const auto longest = static_cast<size_t>(folder.model->facts().max_positions);
    const TextReader reader(folder, {.longest = longest, .side = TextSide::kTarget, .languages = languages});
    place.target = labelled_text(place.word.tokenizer,
                                 read_lines(reader, std::vector<std::string>{prefix},
                                            {.from = {.one = "prefix"}, .remark = remark, .whole = true})[0]);
    place.target.ids.insert(place.target.ids.begin(), folder.translator().config().decoder_start_id);
    place.target.labels.insert(place.target.labels.begin(), "<start>");
    place.predicting = static_cast<int32_t>(place.target.ids.size()) - 1;
    return place;
  }
  if (is_causal(folder)) {
    return {.word = {.tokenizer = folder.source_tokens(), .before = text},
            .predicting = static_cast<int32_t>(read.ids.size()) - 1};
  }
  const int32_t predicting = mask_position(folder, read, called);
  const std::string mask = mask_token(folder);
  const size_t at = text.find(mask);
  if (at == std::string::npos) throw UsageError(fmt::format("{} has no {}", called, mask));
  return {.word = {.tokenizer = folder.source_tokens(),
                   .before = text.substr(0, at),
                   .after = text.substr(at + mask.size()),
                   .mask = mask},
          .predicting = predicting};
}

PatchAnswer word_answer(const WordPlace& place, const char* field, const std::string& word,
                        const PatchRemark& remark) {
  const AnswerWord found = answer_word(place.word, field, word, remark);
  return {.text = word, .token = found.token, .label = found.label, .tokens = found.tokens};
}

void refuse_prefix(const std::string& prefix) {
  if (!prefix.empty())
    throw UsageError(
        "`prefix`: this model translates nothing, so that no target begins with it; leave it out");
}

Batch copies_of_text(const PatchText& text, int64_t copies) {
  Batch batch;
  for (int64_t copy = 0; copy < copies; ++copy) batch.add(text.ids, copy, text.types);
  return batch;
}

std::vector<float> word_log_probabilities(const Model& model, Context& context, const PatchText& text,
                                          const PatchText& target, int32_t predicting,
                                          std::span<const int32_t> tokens, int64_t copies) {
  const bool translator = model.kind() == ModelKind::kTranslator;
  const Batch source = copies_of_text(text, copies),
              read = translator ? copies_of_text(target, copies) : Batch();
  const Batch& predicts = translator ? read : source;
  const Var states = model.read(context, source.view(), translator ? read.view() : Sequences());
  std::vector<int32_t> of_copies, rows, all;
  for (int32_t copy = 0; copy < static_cast<int32_t>(copies); ++copy) {
    of_copies.push_back(predicts.ragged.begin(copy) + predicting);
    rows.insert(rows.end(), tokens.size(), of_copies.back());
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  if (model.kind() == ModelKind::kEncoder)
    return of_masks(model, context, states.value(), of_copies, predicting, all);
  VocabularyScratch scratch;
  return model.next_words(context, states, predicts.view()).log_probabilities(rows, all, scratch);
}

}  // namespace mh
