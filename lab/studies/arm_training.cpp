#include "lab/studies/arm_training.h"

#include <ctime>

#include "lab/studies/equal_start.h"
#include "lab/studies/lab.h"
#include "multihead/nn/layer_weights.h"

namespace mh {
namespace {

double cpu_seconds_of_this_thread() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The members of an ensemble have streams of their own.
uint64_t stream_of(const RunSettings& settings) {
  return settings.seed + 1000 * settings.member;
}

}  // namespace

ArmTraining::ArmTraining(const RunSettings& settings, const EncoderDecoderConfig& model,
                         const TrainingCorpus& text)
    : model_(model),
      objective_(model_, text,
                 {.batches = {.max_tokens = settings.batch_tokens, .seed = stream_of(settings)},
                  .label_smoothing = settings.label_smoothing,
                  .disagreement = settings.disagreement,
                  .disagreement_weight = settings.disagreement_weight}),
      trainer_(objective_, {.schedule = {.peak = settings.learning_rate,
                                         .warmup = settings.warmup,
                                         .decay = Schedule::Decay::kLinear,
                                         .end = settings.updates},
                            .clip_norm = 1,
                            .seed = stream_of(settings)}) {
  model_.initialise(stream_of(settings), settings.embedding_scale);
  if (settings.start == Start::kEqualVariances) set_start_variances(model_, kCanonicalStart);
}

UpdateReport ArmTraining::update() {
  const double start = cpu_seconds_of_this_thread();
  const UpdateReport report = trainer_.update();
  seconds_ += cpu_seconds_of_this_thread() - start;
  return report;
}

bool heads_are_equal(EncoderDecoder& model) {
  for (const auto& [name, heads] : model.attentions()) {
    const LayerWeights layer = weights_of(model.attention(name), model.config().d_model);
    for (const HeadPart part : kHeadParts) {
      if (!layer.has(weight_name(part))) continue;
      for (int h = 1; h < heads; ++h) {
        if (lab::largest_difference(own_part(layer, weight_name(part), h),
                                    own_part(layer, weight_name(part), 0)) > 0)
          return false;
      }
    }
  }
  return true;
}

}  // namespace mh
