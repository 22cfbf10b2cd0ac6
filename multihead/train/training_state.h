// TrainingState: where a training run stands. A checkpoint holds it beside the weights and Adam's moments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mh {

/// The scores of the model on the validation text after an update.
struct Validation {
  int64_t update = 0;
  double loss = 0;             // -ln p per target token, not smoothed
  double perplexity = 0;       // e^loss
  std::optional<double> bleu;  // of a beam search

  template <class V>
  void visit(V& v) {
    v("update", update);
    v("loss", loss);
    v("perplexity", perplexity);
    v("bleu", bleu);
  }
};

/// e^loss, cut where a double ends.
double perplexity_of(double loss);

enum class Metric { kLoss, kBleu };
/// Whether `a` is better than `b`; of equal BLEU the one with the lower loss is better.
bool better(const Validation& a, const Validation& b, Metric metric);
/// Returns the best validation (of equals the earliest); null when there is none.
const Validation* best_of(const std::vector<Validation>& validations, Metric metric);
/// Returns how many validations at the end of the list did not beat the best one before them.
int32_t stalled(const std::vector<Validation>& validations, Metric metric);

/// A setting as text, for comparing runs.
struct Setting {
  std::string name;
  std::string value;

  template <class V>
  void visit(V& v) {
    v("name", name, {.required = true});
    v("value", value, {.required = true});
  }
};
/// Returns one clause for each setting that differs, "seed was 1, is now 2". A setting that `before` does
/// not have yet counts with its value in `usual`.
std::vector<std::string> differences(const std::vector<Setting>& before, const std::vector<Setting>& now,
                                     const std::vector<Setting>& usual = {});

/// The largest numbers that a state on disk may hold: more than any run reaches.
inline constexpr int64_t kMostUpdates = 1'000'000'000'000, kMostTokens = 1'000'000'000'000'000;

/// Batches are a pure function of (seed, epoch), and dropout is one of (seed, update, sentence). So these
/// few numbers determine everything that follows.
struct TrainingState {
  int64_t update = 0;  // updates made
  int64_t epoch = 0;   // of the next batch, from 0
  int64_t batch = 0;   // the next batch, by its number in that epoch's plan
  // Since the last line of metrics:
  double smoothed_loss = 0;  // sums over target tokens
  double negative_log_likelihood = 0;
  int64_t target_tokens = 0;
  int64_t source_tokens = 0;
  int64_t sentences = 0;

  std::vector<Validation> validations;
  std::vector<Setting> settings;  // what the run was started with
  std::string data;               // fingerprint of the token ids to train on

  template <class V>
  void visit(V& v) {
    v("update", update, {.low = 0, .high = kMostUpdates, .required = true});
    v("epoch", epoch, {.low = 0, .high = kMostUpdates, .required = true});
    v("batch", batch, {.low = 0, .high = kMostUpdates, .required = true});
    v("smoothed_loss", smoothed_loss);
    v("negative_log_likelihood", negative_log_likelihood);
    v("target_tokens", target_tokens, {.low = 0, .high = kMostTokens});
    v("source_tokens", source_tokens, {.low = 0, .high = kMostTokens});
    v("sentences", sentences, {.low = 0, .high = kMostTokens});
    v("validations", validations, {.required = true});
    v("settings", settings, {.required = true});
    v("data", data, {.required = true});
  }
};

/// All in which a state contradicts itself, one clause each, so that its file must be damaged; empty when it
/// may be what a training wrote. Trainer::problems_with() knows the corpus besides.
std::vector<std::string> problems_of(const TrainingState& state);

}  // namespace mh
