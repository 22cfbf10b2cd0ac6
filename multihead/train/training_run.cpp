#include "multihead/train/training_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/distributed/agreement.h"
#include "multihead/io/check_option.h"

namespace mh {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool regular(int64_t update, const RunOptions& options) {
  return update % options.save_every == 0 || update % options.validate_every == 0;
}

// Measures while training; validation and saving do not count.
struct Speed {
  double seconds = 0;
  double tokens = 0;
  double updates = 0;
  void add(double elapsed, int64_t target_tokens) {
    constexpr double kMemory = 0.98;  // the last 50 updates or so
    seconds = kMemory * seconds + elapsed;
    tokens = kMemory * tokens + static_cast<double>(target_tokens);
    updates = kMemory * updates + 1;
  }
};

class Run {
 public:
  Run(Trainer& trainer, CheckpointStore* store, MetricsLog* metrics, const RunOptions& options,
      const RunHooks& hooks)
      : trainer_(trainer), store_(store), metrics_(metrics), options_(options), hooks_(hooks) {
    for (const auto& [name, every] : {std::pair{"validate_every", options.validate_every},
                                      {"save_every", options.save_every},
                                      {"log_every", options.log_every}}) {
      check_option(name, every, {.low = 1});
    }
    for (const auto& [name, most] : {std::pair{"updates", options.updates}, {"epochs", options.epochs}})
      check_option(name, most, {.low = 0});
    check_option("patience", options.patience, {.low = 0});
    check_option("keep", options.keep, {.low = 1});
    check_option("average", options.average, {.low = 1});
    // Ranks save together, so where this one would is where rank 0 does.
    if (store_ != nullptr && !store_->updates().empty()) saved_ = store_->updates().back();
    saved_ = std::stoll(of_first_rank(trainer_.group(), std::to_string(saved_)));
  }

  RunEnd train() {
    try {
      return train_until_asked();
    } catch (const Interrupted&) {
      interrupt();
    }
  }

 private:
  RunEnd train_until_asked() {
    const TrainingState& state = trainer_.state();
    for (;;) {
      if (state.update > 0) keep();  // of a run that was stopped within a validation, first that one
      if (const auto end = ended(state, options_)) {
        finish();
        return *end;
      }
      if (any_rank(trainer_.group(), hooks_.stop && hooks_.stop()))
        throw Interrupted("asked between updates");
      update();
    }
  }

  // Validates and saves when it is time.
  void keep() {
    const int64_t update = trainer_.state().update;
    const bool validates = hooks_.validate && update % options_.validate_every == 0;
    if (validates) validate();
    if (validates || regular(update, options_)) save();
  }

  void update() {
    TrainingState& state = trainer_.state();
    const auto start = Clock::now();
    const UpdateReport report = trainer_.update();
    if (!report.finite) not_finite();
    const double elapsed = seconds_since(start);
    speed_.add(elapsed, report.target_tokens);
    line_seconds_ += elapsed;
    line_tokens_ += report.target_tokens;
    line_waiting_ += report.ranks.waiting_seconds;
    line_slowest_ = std::min(line_slowest_, report.ranks.slowest_tokens_per_second);
    last_report_ = report;
    if (state.update % options_.log_every == 0) log();
    if (!hooks_.progress) return;
    TrainingProgress progress;
    progress.update = state.update;
    progress.updates = last_update();
    progress.epoch = epoch_of_last_update();
    progress.loss = report.smoothed_loss / static_cast<double>(report.target_tokens);
    progress.target_tokens_per_second = speed_.tokens / std::max(speed_.seconds, 1e-9);
    if (progress.updates > 0) {
      progress.seconds_left =
          static_cast<double>(progress.updates - state.update) * speed_.seconds / speed_.updates;
    }
    if (!state.validations.empty()) progress.validation = &state.validations.back();
    hooks_.progress(progress);
  }

  // The update at which the run ends if patience lasts; an estimate when only epochs are given.
  int64_t last_update() {
    int64_t last = options_.updates;
    if (options_.epochs > 0) {
      const TrainingState& state = trainer_.state();
      const int64_t a_epoch =
          (trainer_.batches_in_epoch() + trainer_.accumulate() - 1) / trainer_.accumulate();
      const int64_t made_of_epoch = state.batch / trainer_.accumulate();
      const int64_t by_epochs = state.update - made_of_epoch + (options_.epochs - state.epoch) * a_epoch;
      last = last > 0 ? std::min(last, by_epochs) : by_epochs;
    }
    return last;
  }
  int64_t epoch_of_last_update() {
    const TrainingState& state = trainer_.state();
    return state.batch > 0 ? state.epoch + 1 : state.epoch;
  }

  void log() {
    TrainingState& state = trainer_.state();
    const auto tokens = static_cast<double>(state.target_tokens);
    TrainingLine line;
    line.update = state.update;
    line.epoch = epoch_of_last_update();
    line.loss = state.smoothed_loss / tokens;
    line.perplexity = perplexity_of(state.negative_log_likelihood / tokens);
    line.learning_rate = last_report_->learning_rate;
    line.gradient_norm = last_report_->gradient_norm;
    if (trainer_.objective().compares_heads())
      line.head_similarity = last_report_->head_similarity / static_cast<double>(last_report_->target_tokens);
    if (const auto heads = trainer_.objective().open_heads()) {
      line.heads_open = heads->open;
      line.heads_expected = heads->expected;
    }
    line.target_tokens = state.target_tokens;
    line.target_tokens_per_second = static_cast<double>(line_tokens_) / std::max(line_seconds_, 1e-9);
    line.seconds = seconds_since(start_);
    if (const int ranks = trainer_.group().size(); ranks > 1) {
      line.ranks = RanksLine{.ranks = ranks,
                             .slowest_tokens_per_second = line_slowest_,
                             .waiting_share = std::min(1.0, line_waiting_ / std::max(line_seconds_, 1e-9))};
    }
    if (metrics_ != nullptr) metrics_->add(line);
    state.smoothed_loss = state.negative_log_likelihood = 0;
    state.target_tokens = state.source_tokens = state.sentences = 0;
    line_seconds_ = line_waiting_ = 0;
    line_slowest_ = std::numeric_limits<double>::infinity();
    line_tokens_ = 0;
  }

  void validate() {
    TrainingState& state = trainer_.state();
    if (!state.validations.empty() && state.validations.back().update == state.update) return;
    trainer_.release_memory();
    Validation validation = hooks_.validate();
    validation.update = state.update;
    if (!std::isfinite(validation.loss)) {
      throw Error(fmt::format("the validation loss is not a number after update {}; {}; {}", state.update,
                              last_good(), kRemedy));
    }
    validation.perplexity = perplexity_of(validation.loss);
    state.validations.push_back(validation);
    if (saved_ == state.update) saved_ = -1;  // save again, with what it scored
    if (metrics_ != nullptr) metrics_->add(validation);
    if (hooks_.validated) hooks_.validated(validation);
  }

  void save() {
    TrainingState& state = trainer_.state();
    if (saved_ == state.update) return;
    const StopScope whole(nullptr);
    saved_ = state.update;
    trainer_.collect_moments();
    if (store_ == nullptr) return;
    store_->save(trainer_.objective(), trainer_.adam(), state);
    trainer_.adam().hold_own();
    const Validation* best = best_of(state.validations, options_.metric);
    if (best != nullptr && best->update == state.update) store_->publish(state.update);
    retain();
  }

  // Drops the checkpoints that neither going on nor averaging can need any more.
  void retain() {
    const std::vector<int64_t> available = store_->updates();
    const auto newest = static_cast<size_t>(std::max<int32_t>(options_.keep, 1));
    std::set<int64_t> kept(available.end() - static_cast<int64_t>(std::min(newest, available.size())),
                           available.end());
    for (const int64_t update : chosen_checkpoints(trainer_.state(), options_, available))
      kept.insert(update);
    if (const Validation* best = best_of(trainer_.state().validations, options_.metric))
      kept.insert(best->update);
    for (const int64_t update : available) {
      if (!kept.contains(update)) store_->remove(update);
    }
    // Only the newest two can be gone on from; the others are there for their weights.
    for (size_t i = 0; i + 2 < available.size(); ++i) {
      if (kept.contains(available[i])) store_->drop_moments(available[i]);
    }
  }

  void finish() {
    if (last_report_ && trainer_.state().target_tokens > 0) log();
    if (hooks_.validate) validate();
    save();
  }

  [[noreturn]] void interrupt() {
    const int64_t update = trainer_.state().update;
    if (update > 0) save();
    throw Interrupted(update == 0
                          ? std::string("stopped before the first update; nothing was made yet")
                          : fmt::format("stopped after update {}, saved in {}", update, path(update)));
  }

  [[noreturn]] void not_finite() {
    std::vector<int64_t> lines = trainer_.lines_of_next_update();
    std::sort(lines.begin(), lines.end());
    constexpr size_t kShown = 8;
    const size_t shown = std::min(kShown, lines.size());
    throw Error(fmt::format("the loss is not a number at update {} (lines {}{} of the training text); {}; {}",
                            trainer_.state().update + 1,
                            fmt::join(lines.begin(), lines.begin() + static_cast<int64_t>(shown), ", "),
                            lines.size() > shown ? fmt::format(" and {} more", lines.size() - shown) : "",
                            last_good(), kRemedy));
  }
  // Only rank 0 has checkpoints, and it is rank 0 that tells the user.
  std::string path(int64_t update) const {
    return store_ != nullptr ? store_->path(update).string() : fmt::format("update-{}", update);
  }
  std::string last_good() const {
    return saved_ > 0 ? fmt::format("the last good checkpoint is {}", path(saved_))
                      : std::string("no checkpoint was written yet");
  }
  static constexpr const char* kRemedy =
      "lower `learning_rate`, lengthen `warmup` or lower `clip_norm`, and begin in another `model`";

  Trainer& trainer_;
  CheckpointStore* store_;
  MetricsLog* metrics_;
  const RunOptions& options_;
  const RunHooks& hooks_;
  const Clock::time_point start_ = Clock::now();
  Speed speed_;
  std::optional<UpdateReport> last_report_;  // of this process
  double line_seconds_ = 0, line_waiting_ = 0, line_slowest_ = std::numeric_limits<double>::infinity();
  int64_t line_tokens_ = 0;
  int64_t saved_ = -1;
};

}  // namespace

std::optional<RunEnd> ended(const TrainingState& state, const RunOptions& options) {
  if (options.updates > 0 && state.update >= options.updates) return RunEnd::kUpdates;
  if (options.epochs > 0 && state.epoch >= options.epochs) return RunEnd::kEpochs;
  if (options.patience > 0 && stalled(state.validations, options.metric) >= options.patience)
    return RunEnd::kPatience;
  return std::nullopt;
}

std::string run_end_text(RunEnd end) {
  switch (end) {
    case RunEnd::kUpdates:
      return "all updates made";
    case RunEnd::kEpochs:
      return "all epochs made";
    case RunEnd::kPatience:
      return "no better validation for long enough";
  }
  return "";
}

std::vector<int64_t> chosen_checkpoints(const TrainingState& state, const RunOptions& options,
                                        std::span<const int64_t> available) {
  const auto is_available = [&](int64_t update) {
    return std::find(available.begin(), available.end(), update) != available.end();
  };
  const auto count = static_cast<size_t>(std::max(options.average, 1));
  std::vector<int64_t> chosen;
  if (options.average_of == AverageOf::kBest) {
    std::vector<Validation> ranked = state.validations;
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](const Validation& a, const Validation& b) { return better(a, b, options.metric); });
    for (const Validation& validation : ranked) {
      if (chosen.size() < count && is_available(validation.update)) chosen.push_back(validation.update);
    }
  } else {
    const bool over = ended(state, options).has_value();
    for (auto update = available.rbegin(); update != available.rend() && chosen.size() < count; ++update) {
      const bool counts =
          *update % std::max<int64_t>(options.save_every, 1) == 0 || (over && *update == state.update);
      if (counts && *update <= state.update) chosen.push_back(*update);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

RunEnd run_training(Trainer& trainer, CheckpointStore* store, MetricsLog* metrics, const RunOptions& options,
                    const RunHooks& hooks) {
  return Run(trainer, store, metrics, options, hooks).train();
}

}  // namespace mh
