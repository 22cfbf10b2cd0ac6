// TrainingText: what a translator is trained and measured on, the same on every rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/data/parallel_text.h"
#include "multihead/distributed/process_group.h"
#include "multihead/train/training_corpus.h"
#include "multihead/train/training_state.h"
#include "multihead/train/translator/translator_corpus.h"
#include "multihead/train/translator/translator_settings.h"
#include "multihead/train/translator/translator_validation.h"

namespace mh {

class TrainingText {
 public:
  using Remark = std::function<void(const std::string&)>;
  /// Reads the files, on rank 0 alone with `share_corpus`. known: called on rank 0 after that; returns tokenizers
  /// that need not be made, or none. remark: may be empty. Throws UsageError when all pairs are too long, and on
  /// every rank when two ranks have different texts. REQUIRES: settings, group and remark outlive this.
  TrainingText(const TranslatorSettings& settings, ProcessGroup& group, const Remark& remark,
               const std::function<std::optional<TranslatorTokenizers>()>& known);
  TrainingText(const TrainingText&) = delete;
  TrainingText& operator=(const TrainingText&) = delete;

  const TranslatorTokenizers& tokenizers() const { return *tokenizers_; }
  const TrainingCorpus& corpus() const { return corpus_; }
  const TranslatorValidation* validation() const { return validation_.get(); }  // null: there is no such text
  const std::string& fingerprint() const { return fingerprint_; }               // of both texts
  int64_t left_out() const { return left_out_; }                                // pairs that are too long

  /// Returns a clause for each of text and tokenizer that is not the run's. The texts are compared, wherever they
  /// lie; so is a tokenizer that the run did not have from the beginning.
  std::vector<std::string> differences_from(const TrainingState& saved) const;

 private:
  struct Validated {
    TrainingCorpus corpus;
    std::vector<std::string> references;
  };
  void encode(const ParallelText& text, const std::optional<ParallelText>& valid_text,
              std::optional<Validated>& valid);
  void share(std::optional<Validated>& valid);
  void report_left_out(const EncodedText& encoded, size_t all, const std::string& file) const;

  const TranslatorSettings& settings_;
  ProcessGroup& group_;
  const Remark& remark_;
  std::optional<TranslatorTokenizers> tokenizers_;
  TrainingCorpus corpus_;
  std::unique_ptr<TranslatorValidation> validation_;
  std::string fingerprint_;
  int64_t left_out_ = 0;
};

}  // namespace mh
