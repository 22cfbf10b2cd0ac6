// train_translator() by several ranks, as threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/distributed/agreement.h"
#include "multihead/train/translator/train_by_ranks.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/thread_group.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using test::ScratchFolder;
using testing::HasSubstr;

// 60 pairs: words, and the same words in capitals.
TranslatorSettings small_settings(const fs::path& folder) {
  std::ofstream source(folder / "s"), target(folder / "t");
  const char* words[] = {"ab", "cd", "ef", "gh", "ij"};
  const char* capitals[] = {"AB", "CD", "EF", "GH", "IJ"};
  for (size_t i = 0; i < 60; ++i) {
    for (size_t w = 0; w < 1 + i % 4; ++w) {
      source << words[(i + w) % 5] << ' ';
      target << capitals[(i + w) % 5] << ' ';
    }
    source << '\n', target << '\n';
  }
  source.close(), target.close();
  TranslatorSettings settings;
  settings.train_source = settings.valid_source = (folder / "s").string();
  settings.train_target = settings.valid_target = (folder / "t").string();
  settings.model = (folder / "model").string();
  settings.vocabulary_size = 40;
  settings.d_model = 16, settings.heads = 2, settings.d_ff = 20;
  settings.encoder_layers = settings.decoder_layers = 1;
  settings.batch_tokens = 100;
  settings.updates = 8, settings.validate_every = 4, settings.warmup = 4;
  settings.validate_beam = 2;
  return settings;
}

std::string weights_of(const TranslatorSettings& settings) {
  return read_file(fs::path(settings.model) / "model.safetensors");
}

TEST(TrainByRanks, ReproducibleModelsAndScoresAreTheSameHoweverManyTrain) {
  std::string expected;
  for (const int ranks : {1, 2, 4}) {
    const ScratchFolder folder;
    TranslatorSettings settings = small_settings(folder.path());
    settings.reproducible = true;
    settings.average = 2;
    settings.shard_optimiser = ranks == 4;
    settings.share_corpus = ranks == 2;
    std::vector<TrainingResult> results(static_cast<size_t>(ranks));
    ThreadGroup(ranks).run([&](ProcessGroup& group) {
      TranslatorSettings own = settings;
      // The others need neither the text, which rank 0 shares, nor the folder.
      if (group.rank() != 0 && settings.share_corpus)
        own.train_source = own.train_target = own.valid_source = own.valid_target = "nowhere";
      results[static_cast<size_t>(group.rank())] = train_translator(own, {}, group);
    });
    const std::string weights = weights_of(settings);
    if (ranks == 1) expected = weights;
    EXPECT_TRUE(weights == expected) << ranks;
    ASSERT_TRUE(results[0].final);
    EXPECT_EQ(results[0].averaged.size(), 2u);
    const std::string metrics = read_file(fs::path(settings.model) / "metrics.jsonl");
    EXPECT_EQ(metrics.find("\"ranks\":") != std::string::npos, ranks > 1);
  }
}

TEST(TrainByRanks, GoOnWithAnotherNumberOfRanks) {
  std::string expected;
  for (const bool stopped : {false, true}) {
    const ScratchFolder folder;
    TranslatorSettings settings = small_settings(folder.path());
    settings.reproducible = true;
    settings.valid_source = settings.valid_target =
        "";  // a run's end is validated, and the best model is the last
    settings.average_of = AverageOf::kLast;
    if (stopped) {
      for (const int ranks : {2, 4, 1}) {
        settings.updates = ranks == 2 ? 3 : ranks == 4 ? 6 : 8;
        settings.shard_optimiser = ranks == 4;
        ThreadGroup(ranks).run([&](ProcessGroup& group) { train_translator(settings, {}, group); });
      }
      EXPECT_TRUE(weights_of(settings) == expected);
    } else {
      train_translator(settings);
      expected = weights_of(settings);
    }
  }
}

TEST(TrainByRanks, WhatGoesWrongOnOneIsThrownOnAll) {
  const ScratchFolder folder;
  const TranslatorSettings settings = small_settings(folder.path());
  const auto message = [&](const std::function<void(TranslatorSettings&)>& change_on_last) {
    const auto thrown = ThreadGroup(3).outcomes([&](ProcessGroup& group) {
      TranslatorSettings own = settings;
      if (group.rank() == 2) change_on_last(own);
      train_translator(own, {}, group);
    });
    for (const auto& error : thrown) EXPECT_TRUE(error != nullptr);
    try {
      std::rethrow_exception(thrown[0]);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(message([](TranslatorSettings& own) { own.train_source = "missing"; }),
              HasSubstr("rank 2: cannot read missing"));
  EXPECT_THAT(message([](TranslatorSettings& own) { own.seed = 2; }),
              HasSubstr("`seed` is 2 on rank 2 and 1 on rank 0"));
  std::ofstream(folder.path() / "other") << read_file(settings.train_target);
  EXPECT_THAT(
      message([&](TranslatorSettings& own) { own.train_source = (folder.path() / "other").string(); }),
      HasSubstr("the fingerprint of the text is"));
}

TEST(TrainByRanks, OneThatIsAskedToStopStopsAllAndTheyGoOn) {
  const ScratchFolder folder;
  const TranslatorSettings settings = small_settings(folder.path());
  int asked = 0;
  const auto thrown = ThreadGroup(2).outcomes([&](ProcessGroup& group) {
    TrainingWatcher watcher;
    if (group.rank() == 1) watcher.stop = [&] { return ++asked == 4; };
    train_translator(settings, watcher, group);
  });
  for (const auto& error : thrown) EXPECT_THROW(std::rethrow_exception(error), Interrupted);
  EXPECT_TRUE(fs::exists(fs::path(settings.model) / "checkpoints/update-3"));
  std::vector<TrainingResult> results(2);
  ThreadGroup(2).run([&](ProcessGroup& group) {
    results[static_cast<size_t>(group.rank())] = train_translator(settings, {}, group);
  });
  EXPECT_EQ(results[0].updates, 8);
  ThreadGroup(2).run([&](ProcessGroup& group) {
    results[static_cast<size_t>(group.rank())] = train_translator(settings, {}, group);
  });
  EXPECT_TRUE(results[0].was_finished);
}

}  // namespace
}  // namespace mh
