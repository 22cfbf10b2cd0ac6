// TranslatorValidation: measures a translator on a text: the loss per token, and BLEU of its translations
// by beam search.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/distributed/process_group.h"
#include "multihead/evaluate/bleu.h"
#include "multihead/generate/search.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/text/tokenizer.h"
#include "multihead/train/training_corpus.h"
#include "multihead/train/training_state.h"

namespace mh {

class TranslatorValidation {
 public:
  struct Options {
    int32_t beam_size = 5;     // 0: no translations, no BLEU
    int32_t max_length = 256;  // of a translation, in tokens
    bool lowercase = false;    // BLEU of lower-cased text
    /// Every batch is translated for itself, so that the result does not depend on who translates it.
    bool batches_apart = false;
    SearchOptions search = {};  // what else is said of translations
  };
  /// `references` are the target lines as in the file, one for each pair of the corpus. REQUIRES: `target`
  /// outlives this.
  TranslatorValidation(TrainingCorpus corpus, std::vector<std::string> references, const Tokenizer& target,
                       const Options& options);

  /// The ranks of the group share the work; all return the same.
  Validation operator()(EncoderDecoder& model, ProcessGroup& group) const;
  Validation operator()(EncoderDecoder& model) const {
    OneProcess alone;
    return (*this)(model, alone);
  }
  const TrainingCorpus& corpus() const { return corpus_; }

 private:
  double loss(EncoderDecoder& model, ProcessGroup& group) const;
  double translate_and_score(EncoderDecoder& model, ProcessGroup& group) const;

  TrainingCorpus corpus_;
  Bleu bleu_;
  const Tokenizer& target_;
  Options options_;
};

}  // namespace mh
