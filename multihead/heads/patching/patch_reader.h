// PatchReader: what a model makes of copies of a text, of which some values may have been exchanged: how it decides between two
// answers.
//
//   a model that predicts words      log p(answer), log p(wrong) at the place of the answer, natural logarithms
//   a classifier of texts            the logits of the labels answer and wrong
//   a sentence model                 the cosines of the text's vector v with those of two texts, cos(v, answer), cos(v, wrong)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "multihead/folders/sentence_model.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/nn/context.h"
#include "multihead/tensor/tensor.h"

namespace mh {

class PatchReader {
 public:
  virtual ~PatchReader() = default;
  virtual const Model& model() const = 0;
  /// Throws UsageError when these ask for what the model does not have.
  virtual void check(const Sites& sites) const = 0;
  /// Reads so many copies of a text as one batch; the scores of each.
  virtual std::vector<AnswerScores> read(Context& context, const PatchText& text, int64_t copies) const = 0;
};

/// [texts, dimension]: the vectors of answers. sites: may be null; an edit of one text is not meant for them.
Tensor vectors_of_answers(const SentenceModel& model, std::span<const std::string> answers, Sites* sites);

/// REQUIRES: folder and texts outlive it, and read_patch_texts() made the texts for it.
std::unique_ptr<PatchReader> patch_reader(const ModelFolder& folder, const PatchTexts& texts);
/// The vectors of the answers are made here, with these sites, which may be null. REQUIRES: model outlives it.
std::unique_ptr<PatchReader> patch_reader(const SentenceModel& model, const PatchQuestion& question,
                                          Sites* sites);

}  // namespace mh
