#include "multihead/train/translator/translator_validation.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "multihead/distributed/agreement.h"
#include "multihead/distributed/message.h"
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

Validation TranslatorValidation::operator()(EncoderDecoder& model, ProcessGroup& group) const {
  Validation validation;
  validation.loss = loss(model, group);
  if (options_.beam_size > 0) validation.bleu = translate_and_score(model, group);
  return validation;
}

// The sums of batches are added in the order of the batches, whoever made them.
double TranslatorValidation::loss(EncoderDecoder& model, ProcessGroup& group) const {
  Tape tape;
  Batch source;
  TeacherForced target;
  VocabularyScratch scratch;
  const auto batches = plan_batches(corpus_.tokens, {.max_tokens = kBatchTokens});
  const auto rank = static_cast<size_t>(group.rank()), ranks = static_cast<size_t>(group.size());
  MessageWriter mine;
  for (size_t b = rank; b < batches.size(); b += ranks) {
    tape.clear();
    Context context{.tape = tape};
    gather(corpus_, batches[b], model.config().decoder_start_id, source, target);
    mine.add(model.loss(context, source.view(), target.input.view(), target.next, {}, scratch)
                 .negative_log_likelihood);
  }
  const std::vector<std::string> all = agree_or_fail(group, mine.bytes());
  std::vector<MessageReader> readers(all.begin(), all.end());
  double sum = 0;
  int64_t tokens = 0;
  for (size_t b = 0; b < batches.size(); ++b) {
    sum += readers[b % ranks].number<double>();
    tokens += target_tokens(corpus_, batches[b]);
  }
  return sum / static_cast<double>(tokens);
}

double TranslatorValidation::translate_and_score(EncoderDecoder& model, ProcessGroup& group) const {
  TranslateOptions options{.search = options_.search};
  options.search.beam_size = options_.beam_size;
  options.search.max_length = options_.max_length;
  options.search.min_length = std::min(options.search.shortest(), options_.max_length);
  options.search.max_length_factor = 3;  // a model that has learned little would go on until max_length
  options.max_batch_tokens = kBatchTokens;

  const std::vector<std::vector<int32_t>>& sources = corpus_.tokens.source;
  const auto rank = static_cast<size_t>(group.rank()), ranks = static_cast<size_t>(group.size());
  std::vector<std::vector<int64_t>> batches;  // of sentences that are translated by one call
  if (options_.batches_apart || ranks > 1) {
    std::vector<ExampleSize> sizes;
    for (const auto& source : sources) sizes.push_back({.tokens = static_cast<int64_t>(source.size())});
    batches = plan_batches(sizes, {.max_tokens = kBatchTokens, .order = BatchOptions::Order::kLongestFirst});
  } else {
    batches.emplace_back(sources.size());
    std::iota(batches[0].begin(), batches[0].end(), 0);
  }
  Translator translator(model);
  MessageWriter mine;
  for (size_t b = rank; b < batches.size(); b += ranks) {
    std::vector<std::vector<int32_t>> here;
    for (const int64_t i : batches[b]) here.push_back(sources[static_cast<size_t>(i)]);
    for (const auto& hypotheses : translator.translate(here, options))
      mine.add(
          std::string_view(hypotheses.empty() ? std::string() : target_.decode_known(hypotheses[0].tokens)));
  }
  const std::vector<std::string> all = agree_or_fail(group, mine.bytes());
  std::vector<MessageReader> readers(all.begin(), all.end());
  std::vector<std::string> translations(sources.size());
  for (size_t b = 0; b < batches.size(); ++b) {
    for (const int64_t i : batches[b]) translations[static_cast<size_t>(i)] = readers[b % ranks].text();
  }
  return bleu_.score(translations).score;
}

}  // namespace mh
