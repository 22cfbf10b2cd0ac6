#include "lab/studies/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <set>
#include <utility>

#include "lab/studies/micro_language.h"
#include "multihead/base/error.h"
#include "multihead/base/fingerprint.h"
#include "multihead/base/thread_pool.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/parameters.h"
#include "multihead/models/translator_shape.h"

namespace mh {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kMaxLength = 256;
constexpr int kFormat = 4;  // raise it when a run comes to mean something else

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

TranslatorShape config_of(const Arm& arm, uint64_t seed) {
  TranslatorShape shape = arm.model;
  if (!arm.columns) return shape;
  const auto add = [&](const AttentionPlace& attention) {
    OwnHeads own{.attention = attention.name(), .geometry = shape.heads_of(attention)};
    own.geometry.input = HeadInput::of_columns(arm.columns(1000 * seed + shape.own_heads.size()));
    shape.own_heads.push_back(std::move(own));
  };
  for (int layer = 0; layer < shape.encoder_layers; ++layer) add({AttentionKind::kEncoderSelf, layer});
  for (int layer = 0; layer < shape.decoder_layers; ++layer) {
    add({AttentionKind::kDecoderSelf, layer});
    add({AttentionKind::kCross, layer});
  }
  return shape;
}

GrammarCorpus built_in_corpus(StudySize size, const GrammarOptions& options) {
  return size == StudySize::kQuick ? make_micro_corpus(1, 8000, 100, 200) : make_grammar_corpus(options);
}

ArmRunner::ArmRunner(const Options& options)
    : options_(options),
      settings_(options.settings.value_or(size_settings(options.size))),
      log_(options.runs) {
  if (!options_.watcher.step) options_.watcher.step = [](const std::string&) {};
  if (!options_.watcher.stop) options_.watcher.stop = [] { return false; };
  TranslatorSettings text;
  ParallelText train, valid, test;
  if (options.size == StudySize::kPaper) {
    if (options.data.empty()) {
      throw UsageError(
          "the size of the paper trains on real text: name with `data` the folder of train, val and "
          "test_2016_flickr, .en.gz and .de.gz");
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
  TranslatorShape& model = settings_.model;
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
  const auto updates = static_cast<double>(settings_.updates), warmup = static_cast<double>(settings_.warmup);
  return {.format = kFormat,
          .size = std::string(size_name(size())),
          .text = text_fingerprint_,
          .updates = std::max<int64_t>(1, std::llround(arm.updates * updates)),
          .batch_tokens = settings_.batch_tokens,
          .warmup = std::llround(arm.warmup * arm.updates * warmup),
          .learning_rate = settings_.learning_rate * arm.learning_rate,
          .label_smoothing = arm.label_smoothing,
          .start = arm.start,
          .disagreement = arm.disagreement,
          .disagreement_weight = arm.disagreement_weight,
          .embedding_scale = arm.embedding_scale,
          .head_noise = arm.head_noise,
          .member = arm.member,
          .seed = seed};
}

RunIdentity ArmRunner::identity(const Arm& arm, uint64_t seed) const {
  return {run_settings(arm, seed), config_of(arm, seed)};
}

void ArmRunner::stop_if_asked() const {
  if (options_.watcher.stop()) throw Interrupted("the study was stopped; runs that are done are kept");
}

void ArmRunner::keep_for(std::string_view study) {
  study_ = study;
  asked_for_.clear();
  waited_seconds_ = 0;
}

ArmRunner::Used ArmRunner::used() const {
  Used used{.runs = std::ssize(asked_for_), .waited_seconds = waited_seconds_};
  for (const RunIdentity& run : asked_for_) {
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
  std::vector<std::pair<const Arm*, uint64_t>> jobs;
  std::set<RunIdentity> known;
  double units = 0;
  for (const Arm& arm : arms) {
    for (const uint64_t seed : seeds) {
      const RunIdentity run = identity(arm, seed);
      asked_for_.insert(run);
      if (!known.insert(run).second || log_.find(run)) continue;
      jobs.emplace_back(&arm, seed);
      units += arm.updates;
    }
  }
  // Side by side, each on one thread: a small model keeps one busier than it would two, and all runs are timed alike.
  std::mutex mutex;
  size_t begun = 0;
  const auto begin = Clock::now();
  parallel_for(std::ssize(jobs), [&](int64_t i) {
    const auto& [arm, seed] = jobs[static_cast<size_t>(i)];
    {
      const std::lock_guard lock(mutex);
      const double left = seconds_of_run_ * units / static_cast<double>(thread_count());
      options_.watcher.step(fmt::format("run {} of {}: {}, seed {}{}", ++begun, jobs.size(), arm->name, seed,
                                        left > 0 ? fmt::format("; about {:.0f} s to go", left) : ""));
    }
    const auto start = Clock::now();
    train(*arm, seed);
    const std::lock_guard lock(mutex);
    seconds_of_run_ = seconds_since(start) / arm->updates;
    units -= arm->updates;
  });
  waited_seconds_ += seconds_since(begin);
}

const std::vector<ArmRun>& ArmRunner::runs(const Arm& arm, const std::vector<uint64_t>& seeds) {
  std::vector<RunIdentity> each;
  for (const uint64_t seed : seeds) each.push_back(identity(arm, seed));
  asked_for_.insert(each.begin(), each.end());
  if (const auto known = runs_.find(each); known != runs_.end()) return known->second;
  prepare({arm}, seeds);
  std::vector<ArmRun> all;
  for (const RunIdentity& run : each) {
    all.push_back(*log_.find(run));
    if (const int64_t update = all.back().diverged; update > 0)
      throw Error(
          fmt::format("arm {}, seed {}: the loss of update {} is no number; a smaller learning rate may help",
                      all.back().arm, all.back().seed, update));
  }
  return runs_[each] = std::move(all);
}

std::unique_ptr<EncoderDecoder> ArmRunner::trained(const Arm& arm, uint64_t seed) {
  const std::string file = log_.weights_of(identity(arm, seed), runs(arm, {seed}).front()).string();
  if (!std::filesystem::exists(file)) {  // its curve alone was kept
    const auto start = Clock::now();
    train(arm, seed);
    waited_seconds_ += seconds_since(start);
  }
  return read_encoder_decoder_parameters(TensorFiles(SafetensorsFile::open(file), file),
                                         config_of(arm, seed).config());
}

}  // namespace mh
