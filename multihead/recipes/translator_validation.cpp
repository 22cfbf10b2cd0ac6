#include "multihead/recipes/translator_validation.h"

#include <array>
#include <utility>

#include "multihead/generate/translate.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {
namespace {

// Small batches: an evaluating tape keeps all values of a batch until the next one.
constexpr int64_t kBatchTokens = 1024;

BleuConfig bleu_config(const TranslatorValidation::Options& options) {
  BleuConfig config;
  config.lowercase = options.lowercase;
  return config;
}

}  // namespace

TranslatorValidation::TranslatorValidation(TrainingCorpus corpus, std::vector<std::string> references,
                                           const Tokenizer& target, const Options& options)
    : corpus_(std::move(corpus)),
      bleu_(bleu_config(options), std::array{std::move(references)}),
      target_(target),
      options_(options) {}

Validation TranslatorValidation::operator()(EncoderDecoder& model) const {
  Validation validation;
  validation.loss = loss(model);
  if (options_.beam_size > 0) validation.bleu = translate_and_score(model);
  return validation;
}

double TranslatorValidation::loss(EncoderDecoder& model) const {
  Tape tape;
  Batch source;
  TeacherForced target;
  VocabularyScratch scratch;
  double sum = 0;
  int64_t tokens = 0;
  for (const auto& pairs : plan_batches(corpus_.tokens, {.max_tokens = kBatchTokens})) {
    tape.clear();
    Context context{.tape = tape};
    gather(corpus_, pairs, model.config().decoder_start_id, source, target);
    sum += model.loss(context, source.view(), target.input.view(), target.next, {}, scratch)
               .negative_log_likelihood;
    tokens += target_tokens(corpus_, pairs);
  }
  return sum / static_cast<double>(tokens);
}

double TranslatorValidation::translate_and_score(EncoderDecoder& model) const {
  TranslateOptions options;
  options.search.beam_size = options_.beam_size;
  options.search.max_length = options_.max_length;
  options.search.max_length_factor = 3;  // a model that has learned little would go on until max_length
  options.max_batch_tokens = kBatchTokens;
  const auto found = translate(model, corpus_.tokens.source, options);
  std::vector<std::string> translations;
  for (const auto& hypotheses : found) {
    translations.push_back(hypotheses.empty() ? std::string() : target_.decode(hypotheses[0].tokens));
  }
  return bleu_.score(translations).score;
}

}  // namespace mh
