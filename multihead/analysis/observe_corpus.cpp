#include "multihead/analysis/observe_corpus.h"

#include <fmt/format.h>

#include <string_view>

#include "multihead/base/error.h"
#include "multihead/data/token_batches.h"

namespace mh {
namespace {

/// One observer for the model that stands for all.
class Fan : public Observer {
 public:
  explicit Fan(std::span<CorpusObserver* const> observers) : observers_(observers) {}
  bool wants_weights(std::string_view name) const override {
    for (const CorpusObserver* observer : observers_) {
      if (observer->wants_weights(name)) return true;
    }
    return false;
  }
  void weights(const ObservedWeights& observed) override {
    for (CorpusObserver* observer : observers_) {
      if (observer->wants_weights(observed.name)) observer->weights(observed);
    }
  }

 private:
  std::span<CorpusObserver* const> observers_;
};

void check_ids(const std::vector<int32_t>& ids, const char* what, size_t sentence, int64_t longest,
               int32_t vocabulary) {
  if (static_cast<int64_t>(ids.size()) > longest) {
    throw UsageError(fmt::format("{} {}: {} tokens, but the model reads at most {}", what, sentence + 1,
                                 ids.size(), longest));
  }
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary) {
      throw UsageError(fmt::format("{} {}: token id {} is not below the vocabulary's size, {}", what,
                                   sentence + 1, id, vocabulary));
    }
  }
}

}  // namespace

void observe_corpus(const EncoderDecoder& model, std::span<const std::vector<int32_t>> sources,
                    std::span<const std::vector<int32_t>> targets, std::span<CorpusObserver* const> observers,
                    const ObserveOptions& options) {
  const EncoderDecoderConfig& config = model.config();
  const bool decode = !targets.empty();
  if (decode && targets.size() != sources.size()) {
    throw UsageError(fmt::format("{} sources but {} targets; they are translations of each other, one by one",
                                 sources.size(), targets.size()));
  }
  if (options.max_batch_tokens < 1) {
    throw UsageError(fmt::format("max batch tokens: expected at least 1, got {}", options.max_batch_tokens));
  }
  if (options.interventions) model.check(*options.interventions);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].empty())
      throw UsageError(fmt::format("source {}: no tokens, not even the end token", i + 1));
    check_ids(sources[i], "source", i, config.max_positions, config.vocabulary_size);
    if (decode) check_ids(targets[i], "target", i, config.max_positions - 1, config.target_vocabulary());
  }

  Fan fan(observers);
  Tape tape;
  Context context{.tape = tape, .observer = &fan, .interventions = options.interventions};
  TokenSequences source, target_in;
  std::vector<int32_t> shifted;
  for (size_t i = 0; i < sources.size();) {
    source.clear();
    target_in.clear();
    int64_t tokens = 0;
    for (; i < sources.size(); ++i) {
      const auto more = static_cast<int64_t>(sources[i].size() + (decode ? targets[i].size() + 1 : 0));
      if (tokens > 0 && tokens + more > options.max_batch_tokens) break;
      tokens += more;
      source.add(sources[i], static_cast<int64_t>(i));
      if (!decode) continue;
      shifted.assign(1, config.decoder_start_id);
      shifted.insert(shifted.end(), targets[i].begin(), targets[i].end());
      target_in.add(shifted, static_cast<int64_t>(i));
    }
    for (CorpusObserver* observer : observers) observer->begin_batch(source.sentence_ids);
    tape.clear();
    const Sequences read{.ids = source.ids, .ragged = &source.ragged, .sentences = source.sentence_ids};
    const Var memory = model.encode(context, read);
    if (decode) {
      model.decode(context,
                   {.ids = target_in.ids, .ragged = &target_in.ragged, .sentences = target_in.sentence_ids},
                   memory, read);
    }
    if (options.progress) options.progress(static_cast<int64_t>(i));
  }
}

}  // namespace mh
