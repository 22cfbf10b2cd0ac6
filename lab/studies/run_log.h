// The runs of the studies (one model trained from one seed), kept in files with one line of JSON for each run:
// its settings, its results and its curve. A run is found again by its settings. A line holds only the
// settings that differ from their defaults, so a setting that a later version adds changes no earlier run.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/studies/telemetry.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/disagreement.h"

namespace mh {

struct CurvePoint {
  int64_t update = 0;
  double seconds = 0;        // of training: CPU time, whatever the number of threads; validation not counted
  double loss = 0;           // validation: natural log a target token
  HeadTelemetry heads = {};  // of the encoder, on validation sentences

  template <class V>
  void visit(V& v) {
    v("update", update);
    v("seconds", seconds);
    v("loss", loss);
    v("heads", heads);
  }
};

/// How large the projections of a run's attentions are at the start.
enum class Start {
  kUsual,           // as the geometry is initialised
  kEqualVariances,  // then scaled: scores, values and output have the variances of canonical heads (equal_start.h)
};
inline constexpr EnumNames<Start> kStartNames = {{"usual", Start::kUsual},
                                                 {"equal_variances", Start::kEqualVariances}};

struct ArmRun {
  std::string arm;
  uint64_t seed = 0;
  double loss = 0;     // of the test part: natural log a target token
  double exact = 0;    // share of test sentences translated to the letter (greedy)
  double bleu = 0;     // of those translations
  double seconds = 0;  // CPU time of training
  int64_t updates = 0;
  int64_t parameters = 0;
  int64_t activation_bytes = 0;  // kept for the backward pass, of the last batch
  int64_t diverged = 0;          // the update whose loss was no number, where training ended; 0: none
  /// The first update after which heads that started equal differ in a bit; 0: never, or they did not.
  int64_t parted = 0;
  /// With RunSettings::head_noise: the first update after which the encoder's heads are kApart or more apart by head_distance();
  /// 0: never.
  int64_t apart = 0;
  std::vector<CurvePoint> curve = {};

  template <class V>
  void visit(V& v) {
    v("arm", arm);
    v("seed", seed);
    v("loss", loss);
    v("exact", exact);
    v("bleu", bleu);
    v("seconds", seconds);
    v("updates", updates);
    v("parameters", parameters);
    v("activation_bytes", activation_bytes);
    v("diverged", diverged);
    v("parted", parted);
    v("apart", apart);
    v("curve", curve);
  }
};

/// All that decides what comes of a run, but the model, which TranslatorShape describes. A new field
/// needs a default that is what was done before there was such a choice.
struct RunSettings {
  int32_t format = 0;  // ArmRunner's: how a run is made
  std::string size;    // of the study
  std::string text;    // its fingerprint
  int64_t updates = 0, batch_tokens = 0, warmup = 0;
  double learning_rate = 0;
  float label_smoothing = 0;
  Start start = Start::kUsual;
  Disagreement disagreement = {};
  float disagreement_weight = 1;
  double embedding_scale = 1;
  double head_noise = 0;
  uint64_t member = 0, seed = 0;

  template <class V>
  void visit(V& v) {
    v("size", size);
    v("seed", seed);
    v("updates", updates);
    v("batch_tokens", batch_tokens);
    v("warmup", warmup);
    v("learning_rate", learning_rate);
    v("label_smoothing", label_smoothing);
    v("start", start, kStartNames);
    v("disagreement", disagreement, kDisagreementNames);
    v("disagreement_weight", disagreement_weight);
    v("embedding_scale", embedding_scale);
    v("head_noise", head_noise);
    v("member", member);
    v("text", text);
    v("format", format);
  }
};

/// What a run is.
class RunIdentity {
 public:
  RunIdentity(const RunSettings& settings, const TranslatorShape& model);
  /// From differences(). Throws FormatError that starts with `where`.
  static RunIdentity parse(std::string_view differences, std::string_view where);

  /// JSON of what differs from the defaults.
  std::string differences() const;
  /// Equal runs have equal texts.
  const std::string& all() const { return all_; }
  auto operator<=>(const RunIdentity&) const = default;

 private:
  RunIdentity() = default;
  std::string all_;
};

/// How long an update of an arm takes, where several were timed side by side.
struct UpdateTime {
  std::string arm;
  RunIdentity run;  // of the first seed
  double seconds = 0;
};

/// The runs of a folder, in its files *.jsonl, and times in its times.json; any number of threads may use it.
class RunLog {
 public:
  /// Reads the folder, which need not be there. Throws FileError, FormatError.
  explicit RunLog(std::filesystem::path folder);

  std::optional<ArmRun> find(const RunIdentity& run) const;
  /// Where the run's weights are, or will be when it is kept.
  std::filesystem::path weights_of(const RunIdentity& run, const ArmRun& about);
  /// Adds a line to STUDY.jsonl, unless the run is known.
  void keep(const std::string& study, const RunIdentity& run, const ArmRun& result);

  /// The seconds kept of these runs, in this order, where all of them were timed together; what `seconds` they come
  /// with is not read.
  std::optional<std::vector<double>> find_times(const std::vector<UpdateTime>& times) const;
  void keep_times(const std::vector<UpdateTime>& times, const std::string& processor);

 private:
  void read_times();

  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::map<RunIdentity, ArmRun> runs_;
  std::map<RunIdentity, std::string> weights_;  // the files in the folder, those to come too
  struct TimesTogether {
    std::string processor;
    std::vector<UpdateTime> arms;
  };
  std::vector<TimesTogether> times_;
};

}  // namespace mh
