// What a run measured: metrics.jsonl (one JSON object a line) and a TensorBoard event file beside it.
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

/// One line: averages over the updates since the line before.
struct TrainingLine {
  int64_t update = 0;
  int64_t epoch = 0;  // from 1
  double loss = 0;    // smoothed, a target token
  double perplexity = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  // of the last update, before clipping
  int64_t target_tokens = 0;
  double target_tokens_per_second = 0;
  double seconds = 0;  // since this process began to train
  /// What a disagreement makes smaller, a target token, of the last update.
  std::optional<double> head_similarity = {};

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
  }
};

/// Appends; every line is handed to the system as soon as it is complete.
class MetricsLog {
 public:
  /// Goes on after `update`: lines about later updates, or cut short by a kill, are dropped first.
  /// Throws FileError.
  MetricsLog(const std::filesystem::path& folder, int64_t update);
  ~MetricsLog();

  void add(const TrainingLine& line);
  /// `kind`: "validation", or "final" for the model that is kept at the end.
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
