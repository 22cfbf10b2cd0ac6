// WordPlace: where a model that predicts words is asked for one: after a text, in a translator's target, or at a mask; and which
// tokens a word has there.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "multihead/batch/batch.h"
#include "multihead/folders/language_codes.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/heads/sites/answer_word.h"
#include "multihead/nn/context.h"

namespace mh {

struct WordPlace {
  AnswerPlace word;
  PatchText target = {};   // of a translator: what the decoder reads, the start token first
  int32_t predicting = 0;  // the position whose state predicts the word, of a translator in the target
};

PatchText labelled_text(const Tokenizer& tokenizer, TextTokens tokens);
/// Texts as the model reads them, a translator's with their end. Throws FormatError on texts that are not UTF-8 or longer than the
/// model reads.
std::vector<PatchText> read_whole_texts(const ModelFolder& folder, const std::vector<std::string>& texts,
                                        const LanguagePair& languages, const PatchRemark& remark);
/// The place in a text that was read so. prefix: of a translator, how the target begins; called: what errors call the text. Throws
/// UsageError on an encoder's text whose masks are not one.
WordPlace word_place(const ModelFolder& folder, const std::string& text, const PatchText& read,
                     const std::string& prefix, const LanguagePair& languages, const std::string& called,
                     const PatchRemark& remark);
/// The position of the one mask of a text. Throws UsageError likewise.
int32_t mask_position(const ModelFolder& folder, const PatchText& read, const std::string& called);
/// The word's tokens there; a space is put between two words where neither has one. Throws UsageError on a word of no tokens, or of the
/// unknown token; `field` is what errors call it. remark: hears that it has several tokens.
PatchAnswer word_answer(const WordPlace& place, const char* field, const std::string& word,
                        const PatchRemark& remark);
/// Throws UsageError on a prefix, of a model that translates nothing.
void refuse_prefix(const std::string& prefix);

/// So many copies of a text as one batch.
Batch copies_of_text(const PatchText& text, int64_t copies);
/// Reads so many copies of a text as one batch: log p of each token at the place, [copies * tokens], natural logarithms.
std::vector<float> word_log_probabilities(const Model& model, Context& context, const PatchText& text,
                                          const PatchText& target, int32_t predicting,
                                          std::span<const int32_t> tokens, int64_t copies);

}  // namespace mh
