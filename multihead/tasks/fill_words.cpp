#include "multihead/tasks/fill_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/io/check_option.h"
#include "multihead/models/next_words.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

const Model& model_with_head(const ModelFolder& folder) {
  const Model& model = *folder.model;
  if (model.kind() != ModelKind::kEncoder) {
    throw UsageError(
        fmt::format("{} holds a {} model, which predicts no masked words; name an encoder such as BERT",
                    folder.path.string(), folder.model_type));
  }
  if (!model.predicts()) {
    throw UsageError(fmt::format(
        "{} holds a {} model without a head for masked words; take one that was saved as ...ForMaskedLM",
        folder.path.string(), folder.model_type));
  }
  return model;
}

std::string without_space(std::string word) {
  word.erase(0, word.find_first_not_of(' '));
  return word;
}

}  // namespace

std::vector<std::vector<std::vector<FilledWord>>> fill_words(const ModelFolder& folder,
                                                             const std::vector<std::string>& texts,
                                                             const FillOptions& options) {
  const Model& model = model_with_head(folder);
  const VocabularyHead& head = model.vocabulary();
  static_assert(kMostWords <= kMaxCandidates);
  check_settings(options);
  if (options.words > head.size())
    throw UsageError(
        fmt::format("`words`: expected 1 to the model's {}, got {}", head.size(), options.words));
  if (options.sites) model.check(*options.sites);
  const Tokenizer& tokenizer = folder.source_tokens();
  const std::string mask = mask_token(folder);
  const int32_t mask_id = tokenizer.id_of(mask).value();

  const bool pairs = !options.pairs.empty();
  std::vector<ExampleSize> sizes;
  const auto longest = static_cast<size_t>(model.facts().max_positions);
  const std::vector<TextTokens> read = read_lines(
      TextReader(folder, longest), texts,
      {.from = options.from, .seconds = options.pairs, .remark = options.remark, .strict = options.strict});
  const auto masks_in = [&](const std::vector<int32_t>& ids) {
    return std::count(ids.begin(), ids.end(), mask_id);
  };
  for (size_t i = 0; i < texts.size(); ++i) {
    const TextTokens& text = read[i];
    auto masks = masks_in(text.ids);
    const bool cut = text.ids.size() < text.uncut;
    if (cut) {
      masks = masks_in(tokenizer.encode_ids(texts[i])) +
              (pairs ? masks_in(tokenizer.encode_ids(options.pairs[i])) : 0);
    }
    if (masks == 0)
      throw FormatError(
          fmt::format("{} has no mask; write {} where a word is missing", options.from.at(i), mask));
    if (masks_in(text.ids) < masks) {
      throw FormatError(
          fmt::format("{} has {} tokens, and a mask stands behind the {} that the model reads; shorten it",
                      options.from.at(i), text.uncut, longest));
    }
    sizes.push_back({.tokens = std::ssize(text.ids)});
  }

  std::vector<std::vector<std::vector<FilledWord>>> results(texts.size());
  Tape tape;
  std::vector<int64_t> lengths;
  for (const ExampleSize& size : sizes) lengths.push_back(size.tokens);
  const ListOffsets offsets = ListOffsets::of_texts(lengths);
  ListSites listed(options.sites);
  Context context{.tape = tape, .sites = listed.sites()};
  VocabularyScratch scratch;
  const BatchOptions plan{.max_tokens = options.max_batch_tokens,
                          .order = BatchOptions::Order::kLongestFirst};
  for (const auto& numbers : plan_batches(sizes, plan)) {
    Batch batch;
    std::vector<int64_t> rows;  // of the batch, which are masks
    Ragged masks;               // of each text
    std::vector<int32_t> positions;
    std::vector<size_t> of_text;  // the text of each
    for (const int64_t n : numbers) {
      const std::vector<int32_t>& ids = read[static_cast<size_t>(n)].ids;
      masks.add(static_cast<int32_t>(masks_in(ids)));
      for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] != mask_id) continue;
        positions.push_back(static_cast<int32_t>(i));
        rows.push_back(std::ssize(batch.ids) + static_cast<int64_t>(i));
        of_text.push_back(static_cast<size_t>(n));
      }
      batch.add(ids, n, read[static_cast<size_t>(n)].types);
    }
    listed.begin({.texts = numbers, .count = std::ssize(lengths), .offsets = &offsets});
    tape.clear();
    const Var all = model.read(context, batch.view(), {});
    model.call_pooled(context, all, batch.view());
    const ConstMatrixView states = all.value();
    Tensor masked(std::ssize(rows), states.cols);  // [masks, d_model]
    for (size_t i = 0; i < rows.size(); ++i)
      std::copy_n(states.row(rows[i]), states.cols, masked.view().row(static_cast<int64_t>(i)));
    const Var before = model.word_states(context, tape.constant(masked.view()));
    std::vector<Candidate> best(rows.size() * static_cast<size_t>(options.words));
    NextWords(head, context, before, {.offsets = masks.offsets(), .positions = positions})
        .best({.candidates = options.words}, best, scratch);
    for (size_t i = 0; i < rows.size(); ++i) {
      auto& words = results[of_text[i]].emplace_back();
      for (int32_t k = 0; k < options.words; ++k) {
        const Candidate& one = best[i * static_cast<size_t>(options.words) + static_cast<size_t>(k)];
        words.push_back(
            {.token = one.token,
             .word = without_space(tokenizer.decode_known(std::vector<int32_t>{one.token}, false)),
             .probability = std::exp(static_cast<double>(one.log_probability))});
      }
    }
  }
  return results;
}

}  // namespace mh
