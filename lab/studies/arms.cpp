#include "lab/studies/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <utility>

#include "lab/studies/arm_training.h"
#include "lab/studies/micro_language.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/fingerprint.h"
#include "multihead/base/thread_pool.h"
#include "multihead/evaluate/bleu.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/parameters.h"
#include "multihead/generate/translate.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/train/translator/translator_validation.h"

namespace mh {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kCurvePoints = 8;
constexpr int64_t kMaxLength = 256;
constexpr int64_t kTokensOfBatch = 1024;
constexpr int kFormat = 4;  // raise it when a run comes to mean something else

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_finite(const ArmRun& run) {
  if (run.diverged > 0) {
    throw Error(
        fmt::format("arm {}, seed {}: the loss of update {} is no number; a smaller learning rate may help",
                    run.arm, run.seed, run.diverged));
  }
}

}  // namespace

EncoderDecoderConfig config_of(const Arm& arm, uint64_t seed) {
  EncoderDecoderConfig config = arm.model;
  if (!arm.columns) return config;
  const auto add = [&](const std::string& attention) {
    OwnHeads own{.attention = attention, .geometry = config.heads_of(attention)};
    own.geometry.input = HeadInput::of_columns(arm.columns(1000 * seed + config.own_heads.size()));
    config.own_heads.push_back(std::move(own));
  };
  for (int layer = 0; layer < config.encoder_layers; ++layer)
    add(fmt::format("encoder.{}.self_attention", layer));
  for (int layer = 0; layer < config.decoder_layers; ++layer) {
    add(fmt::format("decoder.{}.self_attention", layer));
    add(fmt::format("decoder.{}.cross_attention", layer));
  }
  return config;
}

GrammarCorpus built_in_corpus(StudySize size, const GrammarOptions& options) {
  return size == StudySize::kQuick ? make_micro_corpus(1, 8000, 100, 200) : make_grammar_corpus(options);
}

ArmRunner::ArmRunner(const Options& options)
    : options_(options),
      settings_(options.settings.value_or(size_settings(options.size))),
      log_(options.runs) {
  TranslatorSettings text;
  ParallelText train, valid, test;
  if (options.size == StudySize::kPaper) {
    if (options.data.empty()) {
      throw UsageError(
          "the size of the paper trains on real text: name with `data` the folder of train, val and "
          "test_2016_flickr, "
          ".en.gz and .de.gz");
    }
    const auto read = [&](const char* part) {
      return read_parallel_text(options.data / (std::string(part) + ".en.gz"),
                                options.data / (std::string(part) + ".de.gz"));
    };
    train = read("train"), valid = read("val"), test = read("test_2016_flickr");
    text.lowercase = true;
    text.vocabulary_size = settings_.vocabulary;
  } else {
    GrammarCorpus corpus = built_in_corpus(options.size, settings_.grammar);
    train = parallel_text(corpus.train), valid = parallel_text(corpus.valid),
    test = parallel_text(corpus.test);
    test_sentences_ = std::move(corpus.test);
    text.word_level = true;
  }
  tokenizers_ = make_tokenizers(text, train);
  train_ = encode_text(train, *tokenizers_, kMaxLength).corpus;
  valid_ = encode_text(valid, *tokenizers_, kMaxLength).corpus;
  test_ = encode_text(test, *tokenizers_, kMaxLength).corpus;
  references_ = test.target;
  const SpecialIds ids = special_ids(tokenizers_->source, "the tokenizer");
  EncoderDecoderConfig& model = settings_.model;
  model.vocabulary_size = tokenizers_->source.size();
  model.eos_id = ids.end;
  model.pad_id = model.decoder_start_id = ids.pad;
  model.max_positions = kMaxLength;
  Fingerprint all;
  for (const auto* corpus : {&train_, &valid_, &test_}) all.add(fingerprint(*corpus));
  text_fingerprint_ = all.digits();
}

Arm ArmRunner::base(std::string name) const {
  return {.name = std::move(name), .model = settings_.model};
}

RunSettings ArmRunner::run_settings(const Arm& arm, uint64_t seed) const {
  return {.format = kFormat,
          .size = std::string(size_name(options_.size)),
          .text = text_fingerprint_,
          .updates = updates_of(arm),
          .batch_tokens = settings_.batch_tokens,
          .warmup = warmup_of(arm),
          .learning_rate = settings_.learning_rate * arm.learning_rate,
          .label_smoothing = arm.label_smoothing,
          .start = arm.start,
          .disagreement = arm.disagreement,
          .disagreement_weight = arm.disagreement_weight,
          .embedding_scale = arm.embedding_scale,
          .member = arm.member,
          .seed = seed};
}

RunIdentity ArmRunner::identity(const Arm& arm, uint64_t seed) const {
  return {run_settings(arm, seed), config_of(arm, seed)};
}

int64_t ArmRunner::updates_of(const Arm& arm) const {
  return std::max<int64_t>(1, std::llround(arm.updates * static_cast<double>(settings_.updates)));
}

int64_t ArmRunner::warmup_of(const Arm& arm) const {
  return std::llround(arm.warmup * arm.updates * static_cast<double>(settings_.warmup));
}

ArmRun ArmRunner::train(const Arm& arm, uint64_t seed) {
  const RunSettings settings = run_settings(arm, seed);
  const int64_t updates = settings.updates;
  ArmTraining training(settings, config_of(arm, seed), train_);
  EncoderDecoder& model = training.model();
  bool equal = starts_equal(arm.model.geometry.initialisation) && heads_are_equal(model);
  const TranslatorValidation validation(valid_, std::vector<std::string>(valid_.lines.size()),
                                        tokenizers_->target(), {.beam_size = 0});
  ArmRun run{.arm = arm.name, .seed = seed, .updates = updates, .parameters = model.parameter_count()};
  const auto look = [&](int64_t update) {
    const double loss = validation(model).loss;
    if (!std::isfinite(loss)) {
      run.diverged = update;
      return;
    }
    run.curve.push_back(
        {.update = update, .seconds = run.seconds, .loss = loss, .heads = head_telemetry(model, valid_)});
  };
  look(0);
  for (int64_t update = 1; update <= updates; ++update) {
    const UpdateReport report = training.update();
    run.seconds = training.seconds();
    if (!report.finite) run.diverged = update;
    if (equal && !heads_are_equal(model)) equal = false, run.parted = update;
    if (update * kCurvePoints / updates != (update - 1) * kCurvePoints / updates) look(update);
    if (run.diverged > 0) {
      log_.keep(study_, identity(arm, seed), run);
      return run;
    }
    if (options_.watcher.stop && options_.watcher.stop())
      throw Interrupted("the study was stopped; runs that are done are kept");
  }
  run.activation_bytes = static_cast<int64_t>(training.activation_bytes());
  training.release_memory();
  run.loss = test_loss(model);

  TranslateOptions greedy;
  greedy.search.beam_size = 1;
  greedy.search.max_length_factor = 3;
  std::vector<std::string> translations;
  for (const auto& found : translate(model, test_.tokens.source, greedy)) {
    translations.push_back(found.empty() ? "" : tokenizers_->target().decode(found[0].tokens));
  }
  int64_t right = 0;
  for (size_t i = 0; i < translations.size(); ++i) right += translations[i] == references_[i];
  run.exact = static_cast<double>(right) / static_cast<double>(translations.size());
  BleuConfig config_of_bleu;
  config_of_bleu.lowercase = options_.size == StudySize::kPaper;
  run.bleu = Bleu(config_of_bleu, std::array{references_}).score(translations).score;

  const RunIdentity identity = this->identity(arm, seed);
  write_file_atomically(log_.weights_of(identity, run), write_encoder_decoder_parameters(model, "multihead"));
  log_.keep(study_, identity, run);  // last: with it the run counts as done
  return run;
}

void ArmRunner::keep_for(std::string_view study) {
  study_ = study;
  asked_for_.clear();
  waited_seconds_ = 0;
}

ArmRunner::Used ArmRunner::used() const {
  Used used{.runs = std::ssize(asked_for_), .waited_seconds = waited_seconds_};
  for (const auto& [all, run] : asked_for_) {
    if (const std::optional<ArmRun> found = log_.find(run)) used.training_seconds += found->seconds;
  }
  return used;
}

void ArmRunner::make_folder() const {
  std::error_code error;
  std::filesystem::create_directories(options_.runs, error);
  if (error) throw FileError(fmt::format("cannot make {}: {}", options_.runs.string(), error.message()));
}

void ArmRunner::prepare(const std::vector<Arm>& arms, const std::vector<uint64_t>& seeds) {
  make_folder();
  struct Job {
    const Arm* arm;
    uint64_t seed;
  };
  std::vector<Job> jobs;
  std::map<std::string, bool> known;
  double units = 0;
  for (const Arm& arm : arms) {
    for (const uint64_t seed : seeds) {
      const RunIdentity run = identity(arm, seed);
      asked_for_.emplace(run.all(), run);
      if (!known.emplace(run.all(), true).second || log_.find(run)) continue;
      jobs.push_back({&arm, seed});
      units += arm.updates;
    }
  }
  // Side by side, each on one thread: a small model keeps one busier than it would two, and all runs are timed alike.
  std::mutex mutex;
  std::atomic<bool> failed{false};  // then those that have not begun are left
  size_t begun = 0;
  const auto run = [&](const Job& job) {
    if (failed) return;
    {
      const std::lock_guard lock(mutex);
      ++begun;
      if (options_.watcher.step) {
        const double left = seconds_of_run_ * units / static_cast<double>(thread_count());
        options_.watcher.step(fmt::format("run {} of {}: {}, seed {}{}", begun, jobs.size(), job.arm->name,
                                          job.seed,
                                          left > 0 ? fmt::format("; about {:.0f} s to go", left) : ""));
      }
    }
    const auto start = Clock::now();
    try {
      train(*job.arm, job.seed);
    } catch (...) {
      failed = true;
      throw;
    }
    const std::lock_guard lock(mutex);
    seconds_of_run_ = seconds_since(start) / job.arm->updates;
    units -= job.arm->updates;
  };
  const auto start = Clock::now();
  parallel_for(std::ssize(jobs), [&](int64_t i) { run(jobs[static_cast<size_t>(i)]); });
  waited_seconds_ += seconds_since(start);
}

const std::vector<ArmRun>& ArmRunner::runs(const Arm& arm, const std::vector<uint64_t>& seeds) {
  std::string all_seeds;
  for (const uint64_t seed : seeds) {
    const RunIdentity run = identity(arm, seed);
    asked_for_.emplace(run.all(), run);
    all_seeds += run.all();
  }
  if (const auto known = runs_.find(all_seeds); known != runs_.end()) return known->second;
  prepare({arm}, seeds);
  std::vector<ArmRun> all;
  for (const uint64_t seed : seeds) {
    all.push_back(*find(arm, seed));
    check_finite(all.back());
  }
  return runs_[all_seeds] = std::move(all);
}

std::unique_ptr<EncoderDecoder> ArmRunner::trained(const Arm& arm, uint64_t seed) {
  prepare({arm}, {seed});
  const RunIdentity run = identity(arm, seed);
  check_finite(*log_.find(run));
  const std::string file = log_.weights_of(run, *log_.find(run)).string();
  if (!std::filesystem::exists(file)) {  // its curve alone was kept
    const auto start = Clock::now();
    train(arm, seed);
    waited_seconds_ += seconds_since(start);
  }
  return read_encoder_decoder_parameters(TensorFiles(SafetensorsFile::open(file), file),
                                         config_of(arm, seed));
}

double ArmRunner::test_loss(EncoderDecoder& model) const {
  return TranslatorValidation(test_, std::vector<std::string>(test_.lines.size()), tokenizers_->target(),
                              {.beam_size = 0})(model)
      .loss;
}

double ArmRunner::ensemble_loss(const std::vector<EncoderDecoder*>& models) const {
  double sum = 0;
  int64_t tokens = 0;
  Batch source;
  TeacherForced target;
  VocabularyScratch scratch;
  for (const auto& pairs : plan_batches(test_.tokens, {.max_tokens = kTokensOfBatch})) {
    gather(test_, pairs, settings_.model.decoder_start_id, source, target);
    std::vector<double> mean(target.next.size(), 0);
    for (EncoderDecoder* model : models) {
      Tape tape;
      Context context{.tape = tape};
      const auto logs =
          model->log_probabilities(context, source.view(), target.input.view(), target.next, scratch);
      for (size_t i = 0; i < logs.size(); ++i)
        mean[i] += std::exp(static_cast<double>(logs[i])) / static_cast<double>(models.size());
    }
    for (const double p : mean) sum -= std::log(p);
    tokens += static_cast<int64_t>(mean.size());
  }
  return sum / static_cast<double>(tokens);
}

}  // namespace mh
