#include "lab/studies/study_size.h"
#include "multihead/models/translator_shape.h"

namespace mh {

SizeSettings size_settings(StudySize size) {
  TranslatorShape model = transformer_preset("tiny");
  model.dropout = {.residual = 0.1f};  // the paper's
  model.encoder_layers = model.decoder_layers = size == StudySize::kQuick ? 1 : 2;
  model.d_model = size == StudySize::kQuick ? 32 : 64;
  model.encoder_ff = model.decoder_ff = 2 * model.d_model;
  SizeSettings s;
  s.model = model, s.seeds = {1, 2, 3};
  switch (size) {
    case StudySize::kQuick:
      s.updates = 240, s.batch_tokens = 800, s.warmup = 60, s.learning_rate = 1e-2;
      break;
    case StudySize::kStandard:
      s.grammar = {
          .train = 20000, .valid = 200, .test = 400, .compositional = 0, .depth = 1, .max_words = 14};
      s.updates = 600, s.batch_tokens = 1200, s.warmup = 240, s.learning_rate = 7e-3;
      s.seeds = {1, 2, 3, 4, 5};
      break;
    case StudySize::kPaper:
      s.vocabulary = 2000;  // with twice as many tokens half of the time goes to the output layer
      s.updates = 1500, s.batch_tokens = 4096, s.warmup = 600, s.learning_rate = 1e-2;
      s.rate_seeds = 1, s.rate_updates = 1.0 / 3;
      break;
  }
  return s;
}

}  // namespace mh
