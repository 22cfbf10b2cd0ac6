// The trainings of the arms: the model of a run, and the time of its updates.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "lab/studies/arms.h"
#include "lab/studies/equal_start.h"
#include "lab/studies/lab.h"
#include "multihead/base/file.h"
#include "multihead/base/thread_pool.h"
#include "multihead/evaluate/bleu.h"
#include "multihead/folders/families/marian.h"
#include "multihead/generate/translate.h"
#include "multihead/kernels/simd.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/layer_weights.h"
#include "multihead/train/trainer.h"
#include "multihead/train/translation_objective.h"
#include "multihead/train/translator/translator_validation.h"

namespace mh {
namespace {

constexpr int kCurvePoints = 8;
constexpr int64_t kTokensOfBatch = 1024;
constexpr int kFirstUpdates = 2;  // they allocate memory, and are not timed
constexpr int kRounds = 9;

double cpu_seconds_of_this_thread() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The members of an ensemble have streams of their own.
uint64_t stream_of(const RunSettings& settings) {
  return settings.seed + 1000 * settings.member;
}

/// A model and what trains it, as the settings of a run describe them.
struct ArmTraining {
  /// The model at its start. REQUIRES: the text outlives this.
  ArmTraining(const RunSettings& settings, const TranslatorShape& shape, const TrainingCorpus& text)
      : model(shape.config()),
        objective(model, text,
                  {.batches = {.max_tokens = settings.batch_tokens, .seed = stream_of(settings)},
                   .label_smoothing = settings.label_smoothing,
                   .disagreement = settings.disagreement,
                   .disagreement_weight = settings.disagreement_weight}),
        trainer(objective, {.schedule = {.peak = settings.learning_rate,
                                         .warmup = settings.warmup,
                                         .decay = Schedule::Decay::kLinear,
                                         .end = settings.updates},
                            .clip_norm = 1,
                            .seed = stream_of(settings)}) {
    model.initialise(stream_of(settings), settings.embedding_scale);
    if (settings.start == Start::kEqualVariances) set_start_variances(model, kCanonicalStart);
    if (settings.head_noise > 0) add_head_noise(model, settings.head_noise, stream_of(settings));
  }
  /// The next update.
  UpdateReport update() {
    const double start = cpu_seconds_of_this_thread();
    const UpdateReport report = trainer.update();
    seconds += cpu_seconds_of_this_thread() - start;
    return report;
  }

  EncoderDecoder model;
  TranslationObjective objective;
  Trainer trainer;
  /// CPU time of the calling threads in all updates so far: what others do on the machine hardly counts.
  double seconds = 0;
};

/// Of all heads of all attentions: whether each has the bits of its attention's first head.
bool heads_are_equal(EncoderDecoder& model) {
  for (const auto& [name, heads, place] : model.attentions()) {
    const LayerWeights layer = weights_of(model.attention(name), model.config().encoder.d_model);
    for (const HeadPart part : kHeadParts) {
      for (int h = 1; h < heads && layer.has(weight_name(part)); ++h) {
        if (lab::largest_difference(own_part(layer, weight_name(part), h),
                                    own_part(layer, weight_name(part), 0)) > 0)
          return false;
      }
    }
  }
  return true;
}

/// Measures the loss on a text.
TranslatorValidation loss_on(const TrainingCorpus& text, const TranslatorTokenizers& tokenizers) {
  return {text, std::vector<std::string>(text.lines.size()), tokenizers.target(), {.beam_size = 0}};
}

}  // namespace

void ArmRunner::train(const Arm& arm, uint64_t seed) {
  const RunIdentity identity = this->identity(arm, seed);
  const RunSettings settings = run_settings(arm, seed);
  const int64_t updates = settings.updates;
  ArmTraining training(settings, config_of(arm, seed), train_);
  EncoderDecoder& model = training.model;
  bool equal = starts_equal(arm.model.geometry.initialisation) && heads_are_equal(model);
  const TranslatorValidation validation = loss_on(valid_, *tokenizers_);
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
    if (!training.update().finite) run.diverged = update;
    run.seconds = training.seconds;
    if (equal && !heads_are_equal(model)) equal = false, run.parted = update;
    if (settings.head_noise > 0 && run.apart == 0 && head_distance(model).value_or(0) >= kApart)
      run.apart = update;
    if (update * kCurvePoints / updates != (update - 1) * kCurvePoints / updates) look(update);
    if (run.diverged > 0) return log_.keep(study_, identity, run);
    stop_if_asked();
  }
  run.activation_bytes = static_cast<int64_t>(training.trainer.activation_bytes());
  training.trainer.release_memory();
  run.loss = test_loss(model);

  TranslateOptions greedy;
  greedy.search.beam_size = 1;
  greedy.search.max_length_factor = 3;
  std::vector<std::string> translations;
  for (const auto& found : translate(model, test_.tokens.source, greedy))
    translations.push_back(found.empty() ? "" : tokenizers_->target().decode_known(found[0].tokens));
  int64_t right = 0;
  for (size_t i = 0; i < translations.size(); ++i) right += translations[i] == references_[i];
  run.exact = static_cast<double>(right) / static_cast<double>(translations.size());
  BleuConfig config_of_bleu;
  config_of_bleu.lowercase = size() == StudySize::kPaper;
  run.bleu = Bleu(config_of_bleu, std::array{references_}).score(translations).score;

  write_file_atomically(log_.weights_of(identity, run), write_encoder_decoder_parameters(model, "multihead"));
  log_.keep(study_, identity, run);  // last: with it the run counts as done
}

double ArmRunner::test_loss(EncoderDecoder& model) const {
  return loss_on(test_, *tokenizers_)(model).loss;
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

std::vector<double> ArmRunner::seconds_of_update(const std::vector<Arm>& arms) {
  const uint64_t seed = seeds().front();
  std::vector<UpdateTime> times;
  for (const Arm& arm : arms) times.push_back({arm.name, identity(arm, seed), 0});
  if (const auto kept = log_.find_times(times)) return *kept;
  options_.watcher.step(fmt::format("{} arms, side by side: the time of an update", arms.size()));
  std::vector<std::unique_ptr<ArmTraining>> trainings;
  for (const Arm& arm : arms)
    trainings.push_back(std::make_unique<ArmTraining>(run_settings(arm, seed), config_of(arm, seed), train_));

  // Ratios to the first arm's time in the same round: the speed of the processor changes from round to round.
  std::vector<std::vector<double>> ratios(arms.size());
  std::vector<double> first;
  // A task of its own keeps an update on one thread, as in prepare().
  parallel_for(2, [&](int64_t task) {
    for (int round = -kFirstUpdates; task == 0 && round < kRounds; ++round) {
      for (size_t i = 0; i < trainings.size(); ++i) {
        stop_if_asked();
        const double before = trainings[i]->seconds;
        trainings[i]->update();
        const double time = trainings[i]->seconds - before;
        if (round < 0) continue;
        if (i == 0) first.push_back(time);
        ratios[i].push_back(time / first.back());
      }
    }
  });
  std::vector<double> seconds;
  for (size_t i = 0; i < arms.size(); ++i) {
    // An arm that stands twice has one time, whatever the noise of the second measurement.
    const auto same = std::ranges::find(times, times[i].run, &UpdateTime::run);
    if (same->seconds == 0) same->seconds = lab::median(ratios[i]) * lab::median(first);
    seconds.push_back(times[i].seconds = same->seconds);
  }
  make_folder();
  log_.keep_times(times, std::string(dispatch_target()));
  return seconds;
}

}  // namespace mh
