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
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lab/studies/run_log.h"
#include "lab/studies/study.h"
#include "lab/studies/study_size.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/train/translator/translator_corpus.h"

namespace mh {

/// One way to make a model; seeds are the runner's.
struct Arm {
  std::string name;       // for people; no part of what a run is
  TranslatorShape model;  // begin with ArmRunner::base()
  /// Unset: the model's. Else every attention reads columns of its own, drawn from this number, which is another
  /// for each attention and each seed.
  std::function<HeadColumns(uint64_t draw)> columns = {};
  double updates = 1;        // times the size's, and as many times its warmup
  double warmup = 1;         // times that
  double learning_rate = 1;  // times the size's
  float label_smoothing = 0;
  Start start = Start::kUsual;
  Disagreement disagreement = {};  // a regulariser
  float disagreement_weight = 1;   // its lambda
  double embedding_scale = 1;      // embeddings begin as N(0, scale^2 / d_model)
  double head_noise = 0;           // add_head_noise() at the start
  uint64_t member = 0;             // of an ensemble: another stream of seeds
};
/// The model of a run: with the columns of this seed.
TranslatorShape config_of(const Arm& arm, uint64_t seed);

/// The built-in text of the quick or the standard size.
GrammarCorpus built_in_corpus(StudySize size, const GrammarOptions& options);

/// How tune() goes on: the losses so far, by the power of two that the rate was multiplied with. Returns the
/// power to try next; none when the lowest loss has a higher one on both sides.
std::optional<int> next_to_try(const std::map<int, double>& losses);

class ArmRunner {
 public:
  struct Options {
    StudySize size = StudySize::kStandard;
    std::optional<SizeSettings> settings = {};  // in the place of the size's
    /// kPaper: folder of train, val and test_2016_flickr, .en.gz and .de.gz
    std::filesystem::path data = {};
    /// A model folder for claims about what is stored; empty: one made here.
    std::filesystem::path checkpoint = {};
    std::filesystem::path runs = "study/runs";
    StudyWatcher watcher = {};  // a step: "run 3 of 40: canonical, seed 2; about 95 s to go"
  };
  /// Reads or makes the text. Throws UsageError when kPaper has no data, and what reading throws.
  explicit ArmRunner(const Options& options);

  /// Runs that are made from now on are lines of STUDY.jsonl; those of all files are known. used() begins anew.
  void keep_for(std::string_view study);
  /// The runs that were asked for, each counted once, whether they were trained now or before.
  struct Used {
    int64_t runs = 0;
    double training_seconds = 0;  // CPU time of all of them
    double waited_seconds = 0;    // by the clock, for those that were trained now
  };
  Used used() const;

  StudySize size() const { return options_.size; }
  const Options& options() const { return options_; }
  const SizeSettings& settings() const { return settings_; }
  const std::vector<uint64_t>& seeds() const { return settings_.seeds; }
  /// The shape the others differ from, vocabulary and special tokens filled in.
  Arm base(std::string name) const;

  /// Trains what is not there yet, with progress over all of them.
  void prepare(const std::vector<Arm>& arms) { prepare(arms, seeds()); }
  void prepare(const std::vector<Arm>& arms, const std::vector<uint64_t>& seeds);
  /// One run a seed, in the order of the seeds. Throws Error when the loss of one became no number.
  const std::vector<ArmRun>& runs(const Arm& arm) { return runs(arm, seeds()); }
  const std::vector<ArmRun>& runs(const Arm& arm, const std::vector<uint64_t>& seeds);
  /// Gives each arm the learning rate that suits it best, and trains it. The rates tried are the size's times powers
  /// of two: with the first seed 1 and 2, then further until the lowest loss on validation has a higher one on both
  /// sides; the two best of them again with SizeSettings::rate_seeds, by the mean. A trial takes rate_updates of the
  /// updates; where its loss becomes no number, the rate is the worst. Where trials are shorter than the training and
  /// the higher of the two best won them, whole trainings decide between the two.
  /// kQuick: trains them at the rates they have.
  void tune(const std::vector<Arm*>& arms);
  void tune(std::vector<Arm>& arms);
  /// Chooses the weight of each arm's regulariser in the same way, of powers of sqrt(10) at the size's learning rate,
  /// and then its learning rate. Returns the losses of the two best weights. kQuick: trains them as they are.
  Table tune_weight(std::vector<Arm>& arms);
  /// Seconds of CPU time that an update of each arm takes, on one thread. They are measured side by side: the arms make
  /// one update each in turn, so what slows the machine slows all of them. Kept with the runs, and found again there.
  std::vector<double> seconds_of_update(const std::vector<Arm>& arms);
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
  /// Of one arm, by the power of two, or of sqrt(10), that its rate, or its weight, was multiplied with.
  using Losses = std::map<int, double>;
  struct Trial {
    Losses& losses;  // where its own belongs
    int power;
    Arm arm;
  };
  /// Trains the trials, and puts their losses on validation in their places: the mean over the first seeds; infinite
  /// where one diverged.
  void compare(const std::vector<Trial>& trials, size_t seeds);
  /// The losses of each arm's two best powers, as tune() finds them; the arms side by side.
  std::vector<Losses> search(const std::vector<Arm*>& arms,
                             const std::function<Arm(const Arm&, int power)>& changed);
  RunSettings run_settings(const Arm& arm, uint64_t seed) const;
  RunIdentity identity(const Arm& arm, uint64_t seed) const;
  void train(const Arm& arm, uint64_t seed);
  void stop_if_asked() const;
  void make_folder() const;  // of the runs

  Options options_;
  SizeSettings settings_;
  std::optional<TranslatorTokenizers> tokenizers_;
  TrainingCorpus train_, valid_, test_;
  std::vector<std::string> references_;
  std::vector<GrammarSentence> test_sentences_;
  std::string text_fingerprint_;
  std::string study_ = "runs";
  RunLog log_;
  std::map<std::vector<RunIdentity>, std::vector<ArmRun>> runs_;  // by what each seed's is
  double seconds_of_run_ = 0;                                     // lately
  std::set<RunIdentity> asked_for_;                               // since keep_for()
  double waited_seconds_ = 0;
};

}  // namespace mh
