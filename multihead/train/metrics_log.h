// MetricsLog: writes the measurements of a run to metrics.jsonl (one JSON object a line) and to a
// TensorBoard event file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "multihead/train/event_file.h"
#include "multihead/train/training_state.h"

namespace mh {

/// What a line has besides when several ranks train together.
struct RanksLine {
  int ranks = 0;
  double slowest_tokens_per_second =
      0;                     // target tokens, in the passes of the slowest rank of the slowest update
  double waiting_share = 0;  // of the time, that a rank waited for others or summed; mean over ranks
};

/// A line of metrics.jsonl about training: averages over the updates since the line before.
struct TrainingLine {
  int64_t update = 0;
  int64_t epoch = 0;  // from 1
  double loss = 0;    // per target token, with label smoothing
  double perplexity = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  // of the last update, before clipping
  int64_t target_tokens = 0;
  double target_tokens_per_second = 0;
  double seconds = 0;  // since this process began to train
  /// The similarity of heads that a disagreement penalises, per target token, of the last update.
  std::optional<double> head_similarity = {};
  /// With gates of heads: how many are open without noise after the last update, and the sum of their probabilities to be open.
  std::optional<int64_t> heads_open = {};
  std::optional<double> heads_expected = {};
  std::optional<RanksLine> ranks = {};

  template <class V>
  void visit(V& v) {
    std::string kind = "train";
    v("kind", kind);
    v("update", update);
    v("epoch", epoch);
    v("loss", loss);
    v("perplexity", perplexity);
    v("learning_rate", learning_rate);
    v("gradient_norm", gradient_norm);
    v("target_tokens", target_tokens);
    v("target_tokens_per_second", target_tokens_per_second);
    v("seconds", seconds);
    if (head_similarity) v("head_similarity", head_similarity);
    if (heads_open) v("heads_open", heads_open);
    if (heads_expected) v("heads_expected", heads_expected);
    if (!ranks) return;
    v("ranks", ranks->ranks);
    v("slowest_tokens_per_second", ranks->slowest_tokens_per_second);
    v("waiting_share", ranks->waiting_share);
  }
};

/// Appends lines; each is passed to the system as soon as it is complete.
class MetricsLog {
 public:
  /// Appends after `update`. Lines about later updates and lines that a kill cut short are removed first.
  /// Throws FileError.
  MetricsLog(const std::filesystem::path& folder, int64_t update);
  ~MetricsLog();

  void add(const TrainingLine& line);
  /// `kind`: "validation", or "final" for the final model.
  void add(const Validation& validation, std::string_view kind = "validation");

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  void write(const File& file, std::string_view bytes, const std::filesystem::path& path);
  void scalars(int64_t update, std::span<const Scalar> values);

  std::filesystem::path lines_path_, events_path_;
  File lines_, events_;
};

}  // namespace mh
