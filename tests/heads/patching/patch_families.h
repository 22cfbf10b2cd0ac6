// Small random models of each family, with questions for activation patching and passes of the whole model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/batch/batch.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/text/tokenizer_parts.h"
#include "tests/heads/measures/circuit_families.h"

namespace mh::test {

/// Words between spaces, and a mask token.
inline Tokenizer word_tokenizer(const std::vector<std::string>& words) {
  TokenizerParts parts;
  parts.model.kind = TokenModel::Kind::kWordLevel;
  parts.model.unknown_token = "[UNK]";
  int32_t id = 0;
  for (const char* special : {"[PAD]", "[UNK]", "[MASK]"}) parts.model.vocabulary.emplace_back(special, id++);
  for (const std::string& word : words) parts.model.vocabulary.emplace_back(word, id++);
  parts.pre_tokenizers.push_back({.kind = PreTokenizerStep::Kind::kWhitespaceSplit});
  return Tokenizer(std::move(parts));
}

inline const std::vector<std::string> kWords = {"two", "dogs", "cats", "run", "sleep",
                                                "see", "park", "the",  "a",   "small"};

inline ModelFolder folder_of(std::unique_ptr<Model> model, const char* type) {
  ModelFolder folder;
  folder.path = "small";
  folder.model_type = type;
  folder.model = std::move(model);
  folder.tokenizer = word_tokenizer(kWords);
  return folder;
}

inline ModelFolder causal_folder() {
  return folder_of(test::family_causal(test::gpt_config(), 3).model, "gpt2");
}
inline ModelFolder llama_folder() {
  return folder_of(test::family_llama().model, "llama");
}
inline ModelFolder bert_folder() {
  return folder_of(test::family_bert().model, "bert");
}
inline ModelFolder modern_bert_folder() {
  return folder_of(test::family_modern_bert().model, "modernbert");
}
inline ModelFolder translator_folder() {
  ModelFolder folder = folder_of(test::family_translator(NormPlacement::kPost, true).model, "marian");
  std::vector<std::string> words(35, "");
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = i < kWords.size() ? kWords[i] : "w" + std::to_string(i);
  folder.tokenizer = word_tokenizer(words);
  return folder;
}

inline const PatchQuestion kContinued{
    .clean = "two dogs see the", .corrupt = "two cats run the", .answer = "park", .wrong = "small"};
inline const PatchQuestion kMasked{.clean = "two dogs [MASK] the park",
                                   .corrupt = "a small [MASK] the park",
                                   .answer = "see",
                                   .wrong = "run"};
inline const PatchQuestion kTranslated{.clean = "two dogs see the",
                                       .corrupt = "a small cats the",
                                       .answer = "park",
                                       .wrong = "small",
                                       .prefix = "the cats"};

/// A pass over the whole model, nothing of it left out.
inline double whole_score(const ModelFolder& folder, const PatchTexts& texts, const PatchText& text,
                          Sites* sites) {
  Tape tape;
  Context context{.tape = tape, .sites = sites};
  Batch source, target;
  source.add(text.ids, 0, text.types);
  if (!texts.target.ids.empty()) target.add(texts.target.ids, 0);
  const Batch& predicts = target.ids.empty() ? source : target;
  const Var states =
      folder.model->read(context, source.view(), target.ids.empty() ? Sequences() : target.view());
  const ConstMatrixView logits = folder.model->logits(context, states, predicts.view()).value();
  return static_cast<double>(logits(texts.predicting, *texts.answer.token)) -
         static_cast<double>(logits(texts.predicting, *texts.wrong.token));
}

inline std::string site_of(const PatchedValue& value, PatchedPart part) {
  if (part == PatchedPart::kStream) return value.name;
  return part == PatchedPart::kHeads ? value.place.attention + ".heads"
                                     : weights_site({value.place.attention, value.place.head});
}

/// The clean values of one place, row by row, at a site.
inline void put_clean(const SiteValues& clean, const PatchedValue& value, PatchedPart part, int heads,
                      SiteValues& put) {
  const std::string site = site_of(value, part);
  const ConstMatrixView all = clean.value(site).view();
  const bool of_head = part == PatchedPart::kHeads;
  const int64_t width = of_head ? all.cols / heads : all.cols, begin = of_head ? value.place.head * width : 0;
  for (int32_t i = 0; i < all.rows; ++i) {
    if (value.place.position && *value.place.position != i) continue;
    put.replace({.site = site,
                 .position = i,
                 .head = of_head ? std::optional(value.place.head) : std::nullopt,
                 .numbers = copied(all.rows_between(i, i + 1).columns_between(begin, begin + width))});
  }
}

inline int heads_of(const Model& model, const std::string& attention) {
  for (const Model::Attention& one : model.attentions()) {
    if (one.name == attention) return one.heads;
  }
  return 0;
}

}  // namespace mh::test
