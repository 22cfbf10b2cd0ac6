// Trains the arms of an experiment: the kinds of model that a study compares. Each arm is trained from several
// seeds, and each of these runs is trained once: it is found again by its settings, so a study that was
// stopped goes on with the runs it lacks, and two studies share a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/studies/run_log.h"
#include "lab/studies/study_size.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/recipes/translator_corpus.h"

namespace mh {

/// One way to make a model; seeds are the runner's.
struct Arm {
  std::string name;            // for people; no part of what a run is
  EncoderDecoderConfig model;  // begin with ArmRunner::base()
  double updates = 1;          // times the size's, and as many times its warmup
  double learning_rate = 1;    // times the size's
  float attention_dropout = 0;
  Disagreement disagreement = Disagreement::kNone;  // a regulariser
  float disagreement_weight = 1;                    // its lambda
  double embedding_scale = 1;                       // embeddings begin as N(0, scale^2 / d_model)
  uint64_t member = 0;                              // of an ensemble: another stream of seeds
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

  /// Runs that are made from now on are lines of STUDY.jsonl; those of all files are known.
  void keep_for(std::string_view study) { study_ = study; }

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
  RunIdentity identity(const Arm& arm, uint64_t seed) const;
  int64_t updates_of(const Arm& arm) const;
  int64_t warmup_of(const Arm& arm) const;
  std::optional<ArmRun> find(const Arm& arm, uint64_t seed) const { return log_.find(identity(arm, seed)); }
  /// alone: no other run is trained meanwhile; it has all threads.
  ArmRun train(const Arm& arm, uint64_t seed, bool alone);
  void prepare(const std::vector<Arm>& arms, const std::vector<uint64_t>& seeds);

  Options options_;
  SizeSettings settings_;
  std::optional<TranslatorTokenizers> tokenizers_;
  TrainingCorpus train_, valid_, test_;
  std::vector<std::string> references_;
  std::vector<GrammarSentence> test_sentences_;
  std::string text_fingerprint_;
  std::string study_ = "runs";
  RunLog log_;
  std::map<std::string, std::vector<ArmRun>> runs_;  // by RunIdentity::all(), of seed 0
  double seconds_of_run_ = 0;                        // lately
};

}  // namespace mh
