#include "multihead/train/training_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/stop.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
namespace fs = std::filesystem;

TrainingState state_with_losses(const std::vector<double>& losses, int64_t every = 10) {
  TrainingState state;
  for (const double loss : losses) {
    state.update += every;
    state.validations.push_back(
        {.update = state.update, .loss = loss, .perplexity = std::exp(loss), .bleu = 100 - loss});
  }
  return state;
}

TEST(TrainingState, BestIsTheEarliestOfEqualsAndPatienceCountsFromIt) {
  const TrainingState state = state_with_losses({5, 3, 4, 3, 6});
  for (const Metric metric : {Metric::kLoss, Metric::kBleu}) {
    EXPECT_EQ(best_of(state.validations, metric)->update, 20);
    EXPECT_EQ(stalled(state.validations, metric), 3);
  }
  EXPECT_TRUE(better({.loss = 2, .bleu = 0}, {.loss = 3, .bleu = 0}, Metric::kBleu));
  EXPECT_FALSE(better({.loss = 2, .bleu = 0}, {.loss = 3, .bleu = 1}, Metric::kBleu));
  EXPECT_EQ(best_of({}, Metric::kLoss), nullptr);
  EXPECT_EQ(stalled({}, Metric::kLoss), 0);
  EXPECT_EQ(ended(state, {.patience = 3}), RunEnd::kPatience);
  EXPECT_EQ(ended(state, {.patience = 4}), std::nullopt);
  EXPECT_EQ(ended(state, {.updates = 50}), RunEnd::kUpdates);
  EXPECT_EQ(ended(state, {.updates = 51, .epochs = 1}), std::nullopt);
}

TEST(TrainingState, DifferencesNameEveryChange) {
  EXPECT_THAT(differences({{"seed", "1"}, {"norm", "post"}, {"gone", "x"}},
                          {{"seed", "2"}, {"norm", "post"}, {"new", ""}}),
              ElementsAre("`seed` was 1, is now 2", "`new` was unknown, is now not given",
                          "`gone` was x, is now unknown"));
  EXPECT_THAT(differences({}, {{"new", "a"}, {"newer", "b"}}, {{"new", "a"}, {"newer", "c"}}),
              ElementsAre("`newer` was unknown, is now b"));
}

TEST(ChosenCheckpoints, LastOnesLeaveOutWhatAKillWrote) {
  const TrainingState state = state_with_losses({5, 4, 3, 9}, 10);  // at update 40
  const RunOptions options{
      .updates = 41, .validate_every = 10, .save_every = 10, .average = 3, .average_of = AverageOf::kLast};
  const std::vector<int64_t> available = {10, 20, 27, 30, 40};
  EXPECT_THAT(chosen_checkpoints(state, options, available), ElementsAre(20, 30, 40));
  TrainingState over = state;
  over.update = 41;
  EXPECT_THAT(chosen_checkpoints(over, options, std::vector<int64_t>{20, 30, 40, 41}),
              ElementsAre(30, 40, 41));
}

TEST(ChosenCheckpoints, BestOnesByTheMetric) {
  const TrainingState state = state_with_losses({5, 2, 4, 3}, 10);
  const RunOptions options{.average = 2, .average_of = AverageOf::kBest};
  EXPECT_THAT(chosen_checkpoints(state, options, std::vector<int64_t>{10, 20, 30, 40}), ElementsAre(20, 40));
}

// All that a run is made of.
struct Fixture {
  explicit Fixture(const fs::path& folder)
      : model(small_shape().config()),
        corpus(small_corpus()),
        store(folder),
        training(model, corpus),
        trainer(training.trainer) {
    const auto saved = store.updates();
    if (saved.empty()) {
      model.initialise(1);
    } else {
      store.restore(store.load(saved.back()), trainer);
    }
    metrics = std::make_unique<MetricsLog>(folder, trainer.state().update);
    hooks.validate = [this] {
      // Anything that depends on the weights, better and better at first.
      const std::vector<float> all = all_parameters(model);
      return Validation{.update = 0, .loss = 3 + all[0], .perplexity = 0, .bleu = std::nullopt};
    };
  }
  RunEnd run() { return run_training(trainer, &store, metrics.get(), options, hooks); }

  EncoderDecoder model;
  TrainingCorpus corpus;
  CheckpointStore store;
  SmallTraining training;
  Trainer& trainer;
  std::unique_ptr<MetricsLog> metrics;
  RunOptions options{
      .updates = 23, .validate_every = 5, .save_every = 4, .log_every = 3, .keep = 2, .average = 3};
  RunHooks hooks;
};

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    // Times differ from run to run.
    const size_t speed = line.find(",\"target_tokens_per_second\"");
    lines.push_back(line.substr(0, speed));
  }
  return lines;
}

TEST(TrainingRun, InterruptedRunsEndWithTheSameBits) {
  test::ScratchFolder straight_folder, stopped_folder;
  std::vector<float> straight, resumed;
  {
    Fixture fixture(straight_folder.path());
    EXPECT_EQ(fixture.run(), RunEnd::kUpdates);
    straight = all_parameters(fixture.model);
    EXPECT_THAT(chosen_checkpoints(fixture.trainer.state(), fixture.options, fixture.store.updates()),
                ElementsAre(16, 20, 23));
  }
  for (const int stop_at : {1, 2, 7, 10, 18}) {
    Fixture fixture(stopped_folder.path());
    fixture.hooks.stop = [&] { return fixture.trainer.state().update >= stop_at; };
    EXPECT_THROW(fixture.run(), Interrupted) << stop_at;
    EXPECT_EQ(fixture.store.updates().back(), stop_at);
  }
  // Within update 23, and within the validation of update 20: both are made again.
  for (const int reached : {20, 22}) {
    Fixture fixture(stopped_folder.path());
    bool asked = false;
    const StopScope scope([&] { return asked; });
    const auto ask = [&] {
      asked = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(25));  // a scope asks every 20
    };
    if (reached == 20) {
      fixture.hooks.validate = [&]() -> Validation {
        ask();
        throw_if_stopped();
        return {};
      };
    } else {
      fixture.hooks.progress = [&](const TrainingProgress& progress) {
        if (progress.update == reached) ask();
      };
    }
    EXPECT_THAT([&] { fixture.run(); },
                ThrowsMessage<Interrupted>(HasSubstr(fmt::format("stopped after update {}", reached))));
    EXPECT_EQ(fixture.trainer.state().update, reached);
    EXPECT_EQ(fixture.store.updates().back(), reached);
  }
  {
    Fixture fixture(stopped_folder.path());
    EXPECT_EQ(fixture.trainer.state().update, 22);
    fixture.run();
    resumed = all_parameters(fixture.model);
    EXPECT_THAT(chosen_checkpoints(fixture.trainer.state(), fixture.options, fixture.store.updates()),
                ElementsAre(16, 20, 23));
    EXPECT_EQ(fixture.trainer.state().validations.size(), 5u);  // 5, 10, 15, 20 and the last, 23
  }
  EXPECT_EQ(straight, resumed);
  for (const char* name : {"model.safetensors", "training_state.safetensors", "training_state.json"}) {
    EXPECT_EQ(read_file(straight_folder.path() / "checkpoints/update-23" / name),
              read_file(stopped_folder.path() / "checkpoints/update-23" / name))
        << name;
  }
  EXPECT_EQ(lines_of(straight_folder.path() / "metrics.jsonl"),
            lines_of(stopped_folder.path() / "metrics.jsonl"));
  EXPECT_EQ(lines_of(straight_folder.path() / "metrics.jsonl").size(),
            13u);  // 8 of training, 5 of validation
}

TEST(TrainingRun, StoppedBeforeTheFirstUpdateItLeavesNothing) {
  const test::ScratchFolder folder;
  Fixture fixture(folder.path());
  fixture.hooks.stop = [] { return true; };
  EXPECT_THROW(fixture.run(), Interrupted);
  EXPECT_TRUE(fixture.store.updates().empty());
}

TEST(TrainingRun, IntervalsAreAtLeastOneUpdate) {
  const test::ScratchFolder folder;
  Fixture fixture(folder.path());
  const RunOptions good = fixture.options;
  for (int64_t RunOptions::*every :
       {&RunOptions::validate_every, &RunOptions::save_every, &RunOptions::log_every}) {
    fixture.options = good;
    fixture.options.*every = 0;
    EXPECT_THROW(fixture.run(), UsageError);
  }
}

TEST(TrainingRun, KeepsWhatAveragingNeedsAndNoMore) {
  const test::ScratchFolder folder;
  Fixture fixture(folder.path());
  fixture.run();
  const Validation* best = best_of(fixture.trainer.state().validations, Metric::kLoss);
  std::vector<int64_t> expected = {16, 20, 23};
  if (best->update < 16) expected.insert(expected.begin(), best->update);
  EXPECT_EQ(fixture.store.updates(), expected);
  EXPECT_FALSE(fs::exists(fixture.store.path(16) / "training_state.safetensors"));
  EXPECT_TRUE(fs::exists(fixture.store.path(23) / "training_state.safetensors"));
  EXPECT_EQ(read_file(folder.path() / "model.safetensors"),
            read_file(fixture.store.path(best->update) / "model.safetensors"));
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename().string().find(".tmp"), std::string::npos) << entry.path();
  }
}

TEST(TrainingRun, StopsWhenPatienceIsOver) {
  const test::ScratchFolder folder;
  Fixture fixture(folder.path());
  fixture.options.updates = 1000;
  fixture.options.patience = 2;
  int calls = 0;
  fixture.hooks.validate = [&] {
    return Validation{.update = 0, .loss = ++calls == 2 ? 1.0 : 2.0 + calls, .perplexity = 0, .bleu = {}};
  };
  EXPECT_EQ(fixture.run(), RunEnd::kPatience);
  EXPECT_EQ(fixture.trainer.state().update, 20);
}

TEST(TrainingRun, StopsAtNaNAndNamesUpdateLinesAndCheckpoint) {
  const test::ScratchFolder folder;
  Fixture fixture(folder.path());
  fixture.hooks.progress = [&](const TrainingProgress& progress) {
    if (progress.update != 6) return;
    fixture.model.visit([](const std::string&, Parameter& parameter) {
      parameter.value.fill(std::numeric_limits<float>::infinity());
      parameter.changed();
    });
  };
  try {
    fixture.run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("at update 7 (lines "));
    EXPECT_THAT(error.what(), HasSubstr("checkpoints/update-5; lower `learning_rate`"));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
  EXPECT_EQ(fixture.store.updates().back(), 5);
}

TEST(CheckpointStore, AveragesParameters) {
  const test::ScratchFolder folder;
  Fixture fixture(folder.path());
  std::vector<std::vector<float>> each;
  for (int i = 0; i < 3; ++i) {
    fixture.trainer.update();
    fixture.store.save(fixture.training.objective, fixture.trainer.adam(), fixture.trainer.state());
    each.push_back(all_parameters(fixture.model));
  }
  fixture.store.average(std::vector<int64_t>{1, 2, 3}, fixture.trainer.adam().parameters());
  const std::vector<float> mean = all_parameters(fixture.model);
  for (size_t i = 0; i < mean.size(); ++i) {
    const double expected = (double{each[0][i]} + each[1][i] + each[2][i]) / 3;
    ASSERT_NEAR(mean[i], expected, 3e-7 * (1 + std::abs(expected)));
  }
}

// A run that goes on reads each file of its checkpoint once: when it is open, nothing else is needed.
TEST(CheckpointStore, WhatWasLoadedNeedsNoFolderAnyMore) {
  const test::ScratchFolder folder;
  Fixture fixture(folder.path());
  for (int i = 0; i < 3; ++i) fixture.trainer.update();
  fixture.store.save(fixture.training.objective, fixture.trainer.adam(), fixture.trainer.state());
  const Checkpoint checkpoint = fixture.store.load(3);
  fs::remove_all(fixture.store.path(3));

  EncoderDecoder model(checkpoint.folder.translator().config());
  SmallTraining other(model, fixture.corpus);
  fixture.store.restore(checkpoint, other.trainer);
  EXPECT_EQ(all_parameters(model), all_parameters(fixture.model));
  EXPECT_EQ(other.trainer.adam().updates(), 3);
  for (size_t i = 0; i < other.trainer.adam().parameters().size(); ++i) {
    const Adam::Moments &a = other.trainer.adam().moments(i), &b = fixture.trainer.adam().moments(i);
    EXPECT_TRUE(std::equal(a.first.data(), a.first.data() + a.first.size(), b.first.data()));
    EXPECT_TRUE(std::equal(a.second.data(), a.second.data() + a.second.size(), b.second.data()));
  }
}

TEST(CheckpointStore, RemovesWhatAKillLeftAndLocksOutOthers) {
  const test::ScratchFolder folder;
  fs::create_directories(folder.path() / "checkpoints/.update-7.tmp.123");
  fs::create_directories(folder.path() / "checkpoints/.update-3.tmp");
  write_file_atomically(folder.path() / ".model.safetensors.tmp", "half");
  write_file_atomically(folder.path() / ".notes.tmp", "somebody's");
  write_file_atomically(folder.path() / "checkpoints/update-x", "not one");
  const CheckpointStore store(folder.path());
  EXPECT_TRUE(store.updates().empty());
  EXPECT_FALSE(fs::exists(folder.path() / "checkpoints/.update-7.tmp.123"));
  EXPECT_FALSE(fs::exists(folder.path() / "checkpoints/.update-3.tmp"));
  EXPECT_FALSE(fs::exists(folder.path() / ".model.safetensors.tmp"));
  EXPECT_TRUE(fs::exists(folder.path() / ".notes.tmp"));
  EXPECT_THROW(CheckpointStore(folder.path(), {.longest = std::chrono::milliseconds(50)}), Error);
}

TEST(CheckpointStore, DamagedFilesAreNamedWithTheRemedy) {
  const test::ScratchFolder folder;
  Fixture fixture(folder.path());
  fixture.trainer.update();
  fixture.store.save(fixture.training.objective, fixture.trainer.adam(), fixture.trainer.state());
  const fs::path checkpoint = fixture.store.path(1);
  const auto expect_refused = [&](const fs::path& file, const std::string& bytes) {
    const std::string before = read_file(file);
    write_file_atomically(file, bytes);
    const auto load = [&] { fixture.store.restore(fixture.store.load(1), fixture.trainer); };
    try {
      load();
      ADD_FAILURE() << file << " with " << bytes.size() << " bytes was accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("remove " + checkpoint.string()));
      EXPECT_THAT(error.what(), HasSubstr(file.filename().string()));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
    write_file_atomically(file, before);
    EXPECT_NO_THROW(load());
  };
  const fs::path state = checkpoint / "training_state.json",
                 moments = checkpoint / "training_state.safetensors";
  const std::string state_bytes = read_file(state), moment_bytes = read_file(moments);
  for (const size_t size : {size_t{0}, size_t{1}, state_bytes.size() / 2, state_bytes.size() - 3}) {
    expect_refused(state, state_bytes.substr(0, size));
  }
  for (const char* text : {"[]", "{}", "null", "{\"update\": -1}", "\xff"}) expect_refused(state, text);
  std::string other_update = state_bytes;
  other_update.replace(other_update.find("\"update\": 1"), 11, "\"update\": 2");
  expect_refused(state, other_update);
  std::string negative = state_bytes;
  negative.replace(negative.find("\"epoch\": 0"), 10, "\"epoch\":-7");
  expect_refused(state, negative);
  for (const size_t size : {size_t{0}, size_t{7}, size_t{40}, moment_bytes.size() - 1}) {
    expect_refused(moments, moment_bytes.substr(0, size));
  }
  std::string renamed = moment_bytes;
  renamed.replace(renamed.find("first."), 6, "thirst");
  expect_refused(moments, renamed);
  expect_refused(moments, read_file(checkpoint / "model.safetensors"));
}

TEST(MetricsLog, ForgetsWhatComesAfterTheCheckpoint) {
  const test::ScratchFolder folder;
  {
    MetricsLog log(folder.path(), 0);
    for (const int64_t update : {10, 20, 30}) log.add(TrainingLine{.update = update});
    log.add(Validation{.update = 20, .loss = 1.5, .perplexity = 2, .bleu = 30});
  }
  std::ofstream(folder.path() / "metrics.jsonl", std::ios::app) << "{\"kind\":\"train\",\"upd";
  {
    MetricsLog log(folder.path(), 20);
    log.add(TrainingLine{.update = 21});
  }
  std::vector<std::string> lines = lines_of(folder.path() / "metrics.jsonl");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[1], HasSubstr("\"update\":20"));
  EXPECT_EQ(lines[2],
            "{\"kind\":\"validation\",\"update\":20,\"loss\":1.5,\"perplexity\":2.0,\"bleu\":30.0}");
  EXPECT_THAT(lines[3], HasSubstr("\"update\":21"));
}

}  // namespace
}  // namespace mh
