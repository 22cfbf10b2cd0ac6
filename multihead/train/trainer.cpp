#include "multihead/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/batch/share_evenly.h"
#include "multihead/distributed/agreement.h"
#include "multihead/io/check_option.h"
#include "multihead/io/config.h"

namespace mh {

Trainer::Trainer(Objective& objective, const TrainerOptions& options)
    : objective_(objective),
      options_(options),
      group_(options.group != nullptr ? *options.group : alone_),
      adam_(named_parameters(objective), options.adam,
            options.shard_moments ? Adam::Share{group_.rank(), group_.size()} : Adam::Share{}),
      gradients_(adam_.parameters()),
      exchange_(gradients_, group_, options.reproducible) {
  check_option("accumulate", options.accumulate, {.low = 1});
  check_option("clip_norm", options.clip_norm, {.low = 0, .high = 1e30});
  check_option("learning_rate", options.schedule.peak, {.low = 0, .high = 1e30});
  check_option("warmup", options.schedule.warmup, {.low = 0});
  check_option("adam_beta1", options.adam.beta1, {.low = 0, .high = 0.999999});
  check_option("adam_beta2", options.adam.beta2, {.low = 0, .high = 0.999999});
  check_option("adam_epsilon", options.adam.epsilon, {.low = 1e-30, .high = 1});
  check_option("weight_decay", options.adam.weight_decay, {.low = 0, .high = 1});
}

int64_t Trainer::batches_in_epoch() {
  if (planned_epoch_ != state_.epoch) {
    plan_ = objective_.plan(static_cast<uint64_t>(state_.epoch));
    planned_epoch_ = state_.epoch;
  }
  return static_cast<int64_t>(plan_.size());
}

Trainer::Range Trainer::next_batches() {
  const int64_t batches = batches_in_epoch();
  if (state_.batch < 0 || state_.batch >= batches) {
    throw UsageError(fmt::format("batch {} of epoch {}: there are {} batches to learn from", state_.batch + 1,
                                 state_.epoch + 1, batches));
  }
  return {static_cast<size_t>(state_.batch),
          static_cast<size_t>(std::min(state_.batch + options_.accumulate, batches))};
}

std::vector<std::string> Trainer::problems_with(const TrainingState& state) const {
  std::vector<std::string> found = problems_of(state);
  if (!found.empty()) return found;
  const int64_t together = options_.accumulate;
  const auto updates_of = [&](int64_t batches) { return (batches + together - 1) / together; };
  const std::vector<std::vector<int64_t>> plan = objective_.plan(static_cast<uint64_t>(state.epoch));
  const auto batches = static_cast<int64_t>(plan.size());
  if (state.batch >= std::max<int64_t>(batches, 1)) {
    found.push_back(fmt::format("batch is {}; the epoch has batches 0 to {}", state.batch, batches - 1));
    return found;
  }
  if (state.batch % together != 0)
    found.push_back(fmt::format("batch is {}; {} of them make an update", state.batch, together));

  int64_t tokens = 0, sentences = 0;  // of an epoch, whichever it is
  for (const auto& batch : plan) {
    tokens += objective_.target_tokens(batch);
    sentences += static_cast<int64_t>(batch.size());
  }
  // Every epoch has its own number of batches; to plan them all again pays for small texts alone.
  constexpr int64_t kMostPlanned = 1'000'000;
  int64_t least = state.epoch, most = state.epoch * sentences;
  if (state.epoch * sentences <= kMostPlanned) {
    least = 0;
    for (int64_t epoch = 0; epoch < state.epoch; ++epoch)
      least += updates_of(static_cast<int64_t>(objective_.plan(static_cast<uint64_t>(epoch)).size()));
    most = least;
  }
  least += updates_of(state.batch);
  most += updates_of(state.batch);
  if (state.update < least || state.update > most) {
    found.push_back(fmt::format(
        "update is {}; epoch {} and batch {} come after {}", state.update, state.epoch, state.batch,
        least == most ? fmt::format("{} updates", least) : fmt::format("{} to {} updates", least, most)));
  }
  const int64_t epochs = state.epoch + 1;
  if (state.target_tokens > epochs * tokens || state.sentences > epochs * sentences) {
    found.push_back(fmt::format("target_tokens is {} and sentences {}; an epoch has {} and {}",
                                state.target_tokens, state.sentences, tokens, sentences));
  }
  return found;
}

std::vector<int64_t> Trainer::lines_of_next_update() {
  std::vector<int64_t> lines;
  const Range range = next_batches();
  for (size_t b = range.begin; b < range.end; ++b) {
    const std::vector<int64_t> more = objective_.lines(plan_[b]);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

std::vector<int64_t> Trainer::share_of(std::span<const int64_t> batch, size_t shard) const {
  if (exchange_.shards() == 1) return {batch.begin(), batch.end()};
  std::vector<double> costs;
  for (const int64_t example : batch) costs.push_back(objective_.cost(example));
  std::vector<int64_t> share = share_evenly(costs, exchange_.shards())[shard];
  for (int64_t& example : share) example = batch[static_cast<size_t>(example)];
  return share;
}

UpdateReport Trainer::update() {
  const Range range = next_batches();
  int64_t target_tokens = 0;
  for (size_t b = range.begin; b < range.end; ++b) target_tokens += objective_.target_tokens(plan_[b]);
  const float scale = 1.0f / static_cast<float>(target_tokens);
  if (!tape_) tape_.emplace(Tape::Mode::kRecord);
  const auto number = static_cast<uint64_t>(state_.update + 1);
  const auto start = std::chrono::steady_clock::now();
  for (size_t shard = exchange_.first_shard(); shard < exchange_.last_shard(); ++shard) {
    LossSums sums;
    for (size_t b = range.begin; b < range.end; ++b) {
      const std::vector<int64_t> examples = share_of(plan_[b], shard);
      if (examples.empty()) continue;
      tape_->clear();
      Context context{.tape = *tape_, .dropout = DropoutKey{options_.seed, number}};
      sums += objective_.loss(context, examples, scale);
      tape_->backward();
    }
    exchange_.finish_shard(sums);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  UpdateReport report;
  static_cast<LossSums&>(report) = exchange_.finish_update(seconds, report.ranks);
  report.gradient_norm = adam_.gradient_norm();
  report.learning_rate = options_.schedule.learning_rate(state_.update + 1);
  report.finite = std::isfinite(report.smoothed_loss) && std::isfinite(report.gradient_norm);
  if (!report.finite) return report;
  const StopScope whole(nullptr);
  adam_.update(report.learning_rate, clip_factor(report.gradient_norm, options_.clip_norm));
  if (options_.shard_moments && group_.size() > 1) give_updated_parameters();

  state_.update += 1;
  state_.batch = static_cast<int64_t>(range.end);
  if (range.end == plan_.size()) {
    state_.epoch += 1;
    state_.batch = 0;
  }
  state_.smoothed_loss += report.smoothed_loss;
  state_.negative_log_likelihood += report.negative_log_likelihood;
  state_.target_tokens += report.target_tokens;
  state_.source_tokens += report.source_tokens;
  state_.sentences += report.sentences;
  return report;
}

namespace {

void copy(ConstMatrixView from, float* to) {
  std::memcpy(to, from.data, static_cast<size_t>(from.size()) * sizeof(float));
}

ConstMatrixView values_of(const NamedParameter& named) {
  const Weight& value = named.parameter->value;
  return {value.data(), value.rows(), value.cols()};
}

}  // namespace

void Trainer::give_updated_parameters() {
  const std::vector<NamedParameter>& parameters = adam_.parameters();
  exchange_.spread(
      [&](size_t i, MatrixView to) {
        if (adam_.owns(i)) copy(values_of(parameters[i]), to.data);
      },
      [&](size_t i, ConstMatrixView from) {
        if (adam_.owns(i)) return;
        copy(from, parameters[i].parameter->value.data());
        parameters[i].parameter->changed();
      });
}

void Trainer::parameters_of_first_rank() {
  if (group_.size() == 1) return;
  const std::vector<NamedParameter>& parameters = adam_.parameters();
  exchange_.spread(
      [&](size_t i, MatrixView to) {
        if (group_.rank() == 0) copy(values_of(parameters[i]), to.data);
      },
      [&](size_t i, ConstMatrixView from) {
        copy(from, parameters[i].parameter->value.data());
        parameters[i].parameter->changed();
      });
}

void Trainer::start_as_first_rank() {
  if (group_.size() == 1) return;
  const std::string state = of_first_rank(group_, group_.rank() == 0 ? to_json(state_) : std::string());
  from_json(state_, state, "the state of rank 0");
  adam_.set_updates(state_.update);
  parameters_of_first_rank();
  for (Tensor Adam::Moments::*moment : {&Adam::Moments::first, &Adam::Moments::second}) {
    exchange_.spread(
        [&](size_t i, MatrixView to) {
          if (group_.rank() == 0 && (adam_.moments(i).*moment).size() > 0)
            copy((adam_.moments(i).*moment).view(), to.data);
        },
        [&](size_t i, ConstMatrixView from) {
          if (adam_.owns(i)) copy(from, (adam_.moments(i).*moment).data());
        });
  }
  adam_.hold_own();
}

void Trainer::collect_moments() {
  if (group_.size() == 1 || !options_.shard_moments) return;
  if (group_.rank() == 0) adam_.hold_all();
  for (Tensor Adam::Moments::*moment : {&Adam::Moments::first, &Adam::Moments::second}) {
    exchange_.spread(
        [&](size_t i, MatrixView to) {
          if (adam_.owns(i)) copy((adam_.moments(i).*moment).view(), to.data);
        },
        [&](size_t i, ConstMatrixView from) {
          if (group_.rank() == 0) copy(from, (adam_.moments(i).*moment).data());
        });
  }
}

}  // namespace mh
