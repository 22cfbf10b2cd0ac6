// A model and a corpus small enough to train in a test.
#pragma once

#include <string>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/train/trainer.h"
#include "multihead/train/translation_objective.h"
#include "tests/support/scratch_folder.h"

namespace mh {

inline TranslatorShape small_shape() {
  TranslatorShape shape;
  shape.vocabulary_size = 23;
  shape.d_model = 12;
  shape.encoder_layers = 2;
  shape.decoder_layers = 1;
  shape.encoder_heads = shape.decoder_heads = 3;
  shape.encoder_ff = shape.decoder_ff = 20;
  shape.dropout = {.residual = 0.1f, .weights = 0.1f, .activation = 0.1f};
  shape.eos_id = 0;
  shape.pad_id = shape.decoder_start_id = 2;
  return shape;
}

/// The target is the source with every token raised by one.
inline TrainingCorpus small_corpus(int pairs = 37) {
  Random random(5);
  TrainingCorpus corpus;
  for (int i = 0; i < pairs; ++i) {
    std::vector<int32_t> source, target;
    for (uint32_t t = 0; t < 1 + random.below(7); ++t) {
      source.push_back(3 + static_cast<int32_t>(random.below(19)));
      target.push_back(source.back() + 1);
    }
    source.push_back(0);
    target.push_back(0);
    corpus.tokens.source.push_back(source);
    corpus.tokens.target.push_back(target);
    corpus.lines.push_back(2 * i + 1);
  }
  return corpus;
}

struct SmallOptions {
  TranslationOptions translation;
  TrainerOptions trainer;
};

inline SmallOptions small_options() {
  return {.translation = {.batches = {.max_tokens = 40, .seed = 7}, .label_smoothing = 0.1f},
          .trainer = {.schedule = {.peak = 1e-2, .warmup = 5}, .clip_norm = 1, .seed = 7}};
}

/// A trainer of translation with its objective. REQUIRES: model and corpus outlive this.
struct SmallTraining {
  SmallTraining(EncoderDecoder& model, const TrainingCorpus& corpus,
                const SmallOptions& options = small_options())
      : objective(model, corpus, options.translation), trainer(objective, options.trainer) {}
  TranslationObjective objective;
  Trainer trainer;
};

inline std::vector<float> all_parameters(EncoderDecoder& model) {
  std::vector<float> all;
  model.visit([&](const std::string&, Parameter& parameter) {
    all.insert(all.end(), parameter.value.data(), parameter.value.data() + parameter.value.size());
  });
  return all;
}

}  // namespace mh
