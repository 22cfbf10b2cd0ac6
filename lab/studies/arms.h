// Arms of experiments, trained once each: a run is found again by its configuration, so that a study that was
// stopped goes on with the runs it lacks, and two studies share a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/studies/study_size.h"
#include "lab/studies/telemetry.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/recipes/translator_corpus.h"

namespace mh {

/// One way to make a model; seeds are the runner's.
struct Arm {
  std::string name;            // for people; not part of what is cached
  EncoderDecoderConfig model;  // begin with ArmRunner::base()
  double updates = 1;          // times the size's, and as many times its warmup
  double learning_rate = 1;    // times the size's
  float attention_dropout = 0;
  Disagreement disagreement = Disagreement::kNone;  // a regulariser
  float disagreement_weight = 1;                    // its lambda
  double embedding_scale = 1;                       // embeddings begin as N(0, scale^2 / d_model)
  uint64_t member = 0;                              // of an ensemble: another stream of seeds
};

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
    v("curve", curve);
  }
};

struct ArmWatcher {
  std::function<void(const std::string&)> step;  // "run 3 of 40: canonical, seed 2; about 95 s to go"
  std::function<bool()> stop;                    // true: Interrupted is thrown; runs that are done are kept
};

class ArmRunner {
 public:
  struct Options {
    StudySize size = StudySize::kStandard;
    std::optional<SizeSettings> settings = {};  // in the place of the size's
    std::filesystem::path data = {};  // kPaper: folder of train, val and test_2016_flickr, .en.gz and .de.gz
    std::filesystem::path runs = "study/runs";
    ArmWatcher watcher = {};
  };
  /// Reads or makes the text. Throws UsageError when kPaper has no data, and what reading throws.
  explicit ArmRunner(const Options& options);

  StudySize size() const { return options_.size; }
  const SizeSettings& settings() const { return settings_; }
  const std::vector<uint64_t>& seeds() const { return settings_.seeds; }
  /// The shape the others differ from, vocabulary and special tokens filled in.
  Arm base(std::string name) const;

  /// Trains what is not there yet, with progress over all of them.
  void prepare(const std::vector<Arm>& arms) { prepare(arms, seeds()); }
  /// One run a seed, in the order of the seeds.
  const std::vector<ArmRun>& runs(const Arm& arm);
  /// Gives each arm that of half, one and two times the size's learning rate with which its first
  /// SizeSettings::rate_seeds have the lowest mean loss on validation, after rate_updates of the updates, and
  /// trains it; half is not tried where twice is better than once. kQuick: leaves them as they are.
  void tune(const std::vector<Arm*>& arms);
  void tune(std::vector<Arm>& arms);
  /// The arm's peak learning rate, for people.
  std::string rate_of(const Arm& arm) const;
  /// The weights of a run; trained again where only its curve was kept.
  std::unique_ptr<EncoderDecoder> trained(const Arm& arm, uint64_t seed);

  /// Test loss of the mean of the models' probabilities, natural log a target token.
  double ensemble_loss(const std::vector<EncoderDecoder*>& models) const;
  double test_loss(EncoderDecoder& model) const;
  const std::vector<GrammarSentence>& test_sentences() const { return test_sentences_; }
  const TranslatorTokenizers& tokenizers() const { return *tokenizers_; }
  const TrainingCorpus& test() const { return test_; }

 private:
  std::string key(const Arm& arm, uint64_t seed) const;
  std::optional<ArmRun> find(const Arm& arm, uint64_t seed) const;
  /// alone: no other run is trained meanwhile; it has all threads.
  ArmRun train(const Arm& arm, uint64_t seed, bool alone) const;
  void prepare(const std::vector<Arm>& arms, const std::vector<uint64_t>& seeds);

  Options options_;
  SizeSettings settings_;
  std::optional<TranslatorTokenizers> tokenizers_;
  TrainingCorpus train_, valid_, test_;
  std::vector<std::string> references_;
  std::vector<GrammarSentence> test_sentences_;
  std::string text_fingerprint_;
  std::map<std::string, std::vector<ArmRun>> runs_;
  double seconds_of_run_ = 0;  // lately
};

}  // namespace mh
