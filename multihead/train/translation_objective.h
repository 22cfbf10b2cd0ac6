// TranslationObjective: trains an encoder-decoder to predict the target of each pair, token by token, with
// teacher forcing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "multihead/folders/save_folder.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/head_gates.h"
#include "multihead/train/objective.h"
#include "multihead/train/training_corpus.h"

namespace mh {

struct TranslationOptions {
  BatchOptions batches = {};
  float label_smoothing = 0;
  Disagreement disagreement = {};  // the regulariser that makes heads differ, if any
  float disagreement_weight = 1;
  /// Set: heads have gates that learn to close (models/head_gates.h), and this is the price of an open one, in nats a target token.
  std::optional<float> head_gates = {};
};

class TranslationObjective : public Objective {
 public:
  /// REQUIRES: model and corpus outlive this. Throws UsageError on an empty corpus, on sides of unequal
  /// sizes and on ids that the model does not have, ShapeError on a pair that is too long for the model,
  /// naming the line.
  TranslationObjective(EncoderDecoder& model, const TrainingCorpus& corpus,
                       const TranslationOptions& options);

  /// The model's, and those of gates.
  void visit(const ParameterVisitor& visitor) override;
  std::vector<std::vector<int64_t>> plan(uint64_t epoch) const override;
  int64_t target_tokens(std::span<const int64_t> batch) const override;
  double cost(int64_t example) const override;
  std::vector<int64_t> lines(std::span<const int64_t> batch) const override;
  LossSums loss(Context& context, std::span<const int64_t> batch, float scale) override;
  bool compares_heads() const override { return options_.disagreement.any(); }
  std::optional<OpenHeads> open_heads() const override;
  bool saved_apart(std::string_view parameter) const override;
  /// With its gates folded into W^O.
  void save_model(const std::filesystem::path& folder, const SaveOptions& options) const override;
  /// Null where there are no gates.
  HeadGates* gates() { return gates_.get(); }
  /// Null where there are no gates; else they are folded while this lives.
  std::unique_ptr<FoldedGates> fold() const;
  void release_memory() override { scratch_ = {}; }

 private:
  EncoderDecoder& model_;
  const TrainingCorpus& corpus_;
  TranslationOptions options_;
  std::unique_ptr<HeadGates> gates_;
  Batch source_;  // memory that is used again and again
  TeacherForced target_;
  VocabularyScratch scratch_;
};

}  // namespace mh
