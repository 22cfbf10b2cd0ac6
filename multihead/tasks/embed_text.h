// Sentences in, vectors out: sentences of one meaning get vectors that point the same way.
//
//   const mh::SentenceModel model = mh::load_sentence_model("minilm");
//   const mh::Tensor rows = mh::embed_text(model, {"two dogs run .", "a pair of dogs is running ."});
//   mh::cosine(rows.view(), 0, 1);   // 1: the same, 0: nothing in common
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/matrix_view.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/io/config.h"
#include "multihead/nn/context.h"
#include "multihead/tensor/tensor.h"
#include "multihead/text/long_lines.h"

namespace mh {

struct EmbedTextOptions {
  /// The second text of each line, which the model reads as one sequence with it; empty: there are none.
  std::vector<std::string> pairs = {};
  /// What comes before every text: the prompt of this name, or this text; neither: SentenceModel::prompt. An empty text is none.
  std::optional<std::string> prompt_name = {}, prompt = {};
  LinesFrom from = {.one = "text"};  // what errors and remarks call the lines
  bool strict = false;               // refuse a line that is too long, which is cut otherwise
  int64_t max_batch_tokens = 2048;   // of one batch; the result does not depend on it
  Sites* sites = nullptr;            // whose sequences are the lines
  /// Called by the calling thread after each of its batches, and at the end.
  std::function<void(int64_t sentences_done)> progress = nullptr;
  /// Hears how many lines were cut, and which words the tokenizer does not know, a line each.
  std::function<void(const std::string&)> remark = nullptr;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Text";
    v("prompt_name", prompt_name, {},
      {.group = kGroup,
       .help = "Put the prompt of this name before every text, such as query",
       .otherwise = "that of default_prompt_name",
       .value = "NAME"});
    v("prompt", prompt, {},
      {.group = kGroup, .help = "Put this text before every text instead; an empty one is none"});
    v("strict", strict, {},
      {.group = kGroup, .help = "Refuse a line that is longer than the model reads; it is cut otherwise"});
    v("max_batch_tokens", max_batch_tokens, {.low = 1},
      {.group = kGroup, .help = "Most tokens in a batch", .rare = true});
  }
};

/// Returns the vectors of the lines, [lines, model.dimension], in their order. Lines of similar length go into
/// one batch, and batches are shared among the threads. A line of more tokens than the model reads
/// (model.longest) is cut; its closing special token stays. A line without text is what the tokenizer makes of
/// it, mostly special tokens; where that is nothing at all its vector is 0. Throws FormatError on a line that
/// is not UTF-8, and with `strict` on one that is too long; UsageError on sites in heads that the
/// model does not have, on pairs that it does not read or that are not as many as lines, on a prompt that it does not have,
/// and on a model whose fields cannot be; Error when vectors are not finite, as of damaged weights.
Tensor embed_text(const SentenceModel& model, const std::vector<std::string>& lines,
                  const EmbedTextOptions& options = {});
/// The same of token ids in place of lines, as the model reads them, special tokens and all, without a prompt. Throws UsageError on ids
/// that are none of the model's and on prompts and pairs, which are made of text; ShapeError on more than the model reads.
Tensor embed_tokens(const SentenceModel& model, std::vector<std::vector<int32_t>> ids,
                    const EmbedTextOptions& options = {});

/// The cosine of the angle between rows i and j; 0 if one of them is 0. Throws UsageError when there are no
/// such rows, or their numbers are not finite.
double cosine(ConstMatrixView rows, int64_t i, int64_t j);

/// How alike rows i and j are, by the formula of `kind`; a model's is SentenceModel::similarity. Throws as cosine().
double similarity_of(ConstMatrixView rows, int64_t i, int64_t j, Similarity kind);

/// How alike each query [Q, d] and each row [N, d] are: [Q, N]. Throws UsageError when numbers are not finite, ShapeError on
/// different d.
Tensor similarities(ConstMatrixView queries, ConstMatrixView rows, Similarity kind);

/// A row that is like a query.
struct Neighbour {
  int64_t row = 0;
  float similarity = 0;
};

/// For each query [Q, d] the `count` rows [N, d] of the greatest similarity (all, if there are fewer), the most
/// alike first; of equal ones the earlier. Throws UsageError when count < 1 or numbers are not finite, ShapeError
/// on different d.
std::vector<std::vector<Neighbour>> nearest_rows(ConstMatrixView queries, ConstMatrixView rows, int64_t count,
                                                 Similarity kind = Similarity::kCosine);

}  // namespace mh
