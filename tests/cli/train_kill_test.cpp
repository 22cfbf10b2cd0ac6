// multihead train as a process: kills, signals, full disks, and resuming.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/folders/model_folder.h"
#include "tests/cli/training.h"

namespace mh {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(SlowTrain, KillsAtAnyMomentEndWithTheSameModel) {
  const ScratchFolder folder;
  write_text(folder);
  const auto start = std::chrono::steady_clock::now();
  const Outcome straight = tool(train_command(folder, "straight"));
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  ASSERT_EQ(straight.status, 0) << straight.errors;

  // SIGKILL after random times: every restart finds a complete checkpoint (or begins anew) and goes on.
  Random random(11);
  double window = 0.5;
  int kills = 0;
  for (; kills < 40; ++kills) {
    Process process(train_command(folder, "killed"));
    std::this_thread::sleep_for(took * window * random.uniform());
    const bool was_running = process.running();
    process.kill(SIGKILL);
    const Outcome outcome = process.wait();
    if (!was_running) {
      ASSERT_EQ(outcome.status, 0) << outcome.errors;
      if (kills > 3) break;
      // It ended before it was killed often enough: begin anew and kill sooner.
      fs::remove_all(folder / "killed");
      window /= 2;
      kills = -1;
      continue;
    }
    const int64_t newest = newest_checkpoint(folder / "killed");
    if (newest >= 0) {
      const std::string checkpoint = folder / fmt::format("killed/checkpoints/update-{}", newest);
      EXPECT_NO_THROW(load_model_folder(checkpoint)) << checkpoint;
    }
  }
  EXPECT_GT(kills, 3);
  const Outcome last = tool(train_command(folder, "killed"));
  ASSERT_EQ(last.status, 0) << last.errors;
  EXPECT_EQ(final_weights(folder, "straight"), final_weights(folder, "killed"));
  EXPECT_NO_THROW(load_model_folder(folder / "killed"));
}

TEST(SlowTrain, SignalsSaveExitWith128AndTheirNumberAndTheRunGoesOn) {
  const ScratchFolder folder;
  write_text(folder);
  ASSERT_EQ(tool(train_command(folder, "straight")).status, 0);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Process process(train_command(folder, "stopped"));
    const int64_t before = newest_checkpoint(folder / "stopped");
    wait_for([&] { return newest_checkpoint(folder / "stopped") > before; }, process);
    process.kill(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status, 128 + signal) << outcome.errors;
    EXPECT_THAT(outcome.errors,
                HasSubstr(fmt::format("update-{}; go on with: ", newest_checkpoint(folder / "stopped"))));
    EXPECT_THAT(outcome.errors, HasSubstr(" train --model "));
  }
  const Outcome last = tool(train_command(folder, "stopped"));
  ASSERT_EQ(last.status, 0) << last.errors;
  EXPECT_THAT(last.errors, HasSubstr("going on from"));
  EXPECT_EQ(final_weights(folder, "straight"), final_weights(folder, "stopped"));

  const Outcome finished = tool(train_command(folder, "stopped"));
  EXPECT_EQ(finished.status, 0);
  EXPECT_THAT(finished.errors, HasSubstr("is finished"));

  const Outcome changed = tool(train_command(folder, "stopped", {"--seed", "2", "--label-smoothing", "0"}));
  EXPECT_EQ(changed.status, 2);
  EXPECT_THAT(changed.errors, HasSubstr("--seed was 1, is now 2"));
  EXPECT_THAT(changed.errors, HasSubstr("--label-smoothing was 0.1, is now 0;"));

  std::ofstream(folder / "train.de", std::ios::app) << "hund\n";
  std::ofstream(folder / "train.en", std::ios::app) << "dog\n";
  const Outcome text = tool(train_command(folder, "stopped"));
  EXPECT_EQ(text.status, 2);
  EXPECT_THAT(text.errors, HasSubstr("the text is not the one"));
}

TEST(SlowTrain, MoreUpdatesAndOtherStartsAndVocabularies) {
  const ScratchFolder folder;
  write_text(folder);
  ASSERT_EQ(tool(train_command(folder, "a", {"--updates", "20"})).status, 0);
  const Outcome more = tool(train_command(folder, "a", {"--updates", "40"}));
  EXPECT_EQ(more.status, 0) << more.errors;
  EXPECT_EQ(newest_checkpoint(folder / "a"), 40);

  const Outcome from = tool(train_command(folder, "b", {"--updates", "5", "--init-from", folder / "a"}));
  EXPECT_EQ(from.status, 0) << from.errors;
  const Outcome shape = tool(train_command(folder, "c", {"--init-from", folder / "a", "--d-ff", "25"}));
  EXPECT_EQ(shape.status, 2) << shape.errors;

  const Outcome norm = tool(train_command(folder, "c", {"--init-from", folder / "a", "--norm", "pre"}));
  EXPECT_EQ(norm.status, 2);
  EXPECT_THAT(norm.errors, HasSubstr("--norm pre but it has post"));
  ASSERT_EQ(tool({"tokenize", "--train", folder / "train.en", "--vocabulary-size", "30", "--output-tokenizer",
                  folder / "other.json"})
                .status,
            0);
  const Outcome tokens =
      tool(train_command(folder, "c", {"--init-from", folder / "a", "--tokenizer", folder / "other.json"}));
  EXPECT_EQ(tokens.status, 2);
  EXPECT_THAT(tokens.errors, HasSubstr("other.json does not match --init-from"));
  EXPECT_EQ(newest_checkpoint(folder / "c"), -1);

  const Outcome separate = tool(train_command(
      folder, "d", {"--updates", "10", "--separate-vocabularies", "--word-level", "--norm", "pre"}));
  EXPECT_EQ(separate.status, 0) << separate.errors;
  EXPECT_TRUE(load_model_folder(folder / "d").target_tokenizer.has_value());
  const Outcome again = tool(train_command(
      folder, "d", {"--updates", "20", "--separate-vocabularies", "--word-level", "--norm", "pre"}));
  EXPECT_EQ(again.status, 0) << again.errors;

  const Outcome reused =
      tool(train_command(folder, "e", {"--updates", "5", "--tokenizer", folder / "a/tokenizer.json"}));
  EXPECT_EQ(reused.status, 0) << reused.errors;
  EXPECT_EQ(read_file(folder / "e/tokenizer.json"), read_file(folder / "a/tokenizer.json"));
}

TEST(SlowTrain, AFullDiskLosesNothing) {
  const ScratchFolder folder;
  write_text(folder);
  ASSERT_EQ(tool(train_command(folder, "a", {"--updates", "20"})).status, 0);
  const std::string before = final_weights(folder, "a");
  // No file may grow beyond 8 KiB: the next checkpoint fails as on a full disk.
  const Outcome full = tool(train_command(folder, "a", {"--updates", "40"}), 8192);
  EXPECT_EQ(full.status, 1) << full.errors;
  EXPECT_THAT(full.errors, HasSubstr("cannot write"));
  EXPECT_EQ(newest_checkpoint(folder / "a"), 20);
  EXPECT_EQ(final_weights(folder, "a"), before);
  EXPECT_EQ(tool(train_command(folder, "a", {"--updates", "40"})).status, 0);
}

// Whichever of its files is damaged: the error names the newest checkpoint as what to remove, and without it
// the run ends as one that was never disturbed.
TEST(SlowTrain, ADamagedCheckpointIsNamedWithTheRemedy) {
  const ScratchFolder folder;
  write_text(folder);
  const auto command = [&](const std::string& model, const char* updates) {
    return train_command(folder, model, {"--updates", updates});
  };
  ASSERT_EQ(tool(command("straight", "40")).status, 0);
  ASSERT_EQ(tool(command("a", "30")).status, 0);
  const std::string newest = folder / "a/checkpoints/update-30";
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json", "training_state.json",
                           "training_state.safetensors"}) {
    for (const bool removed : {false, true}) {
      const std::string file = newest + "/" + name, whole = read_file(file);
      if (removed) {
        fs::remove(file);
      } else {
        std::ofstream(file, std::ios::binary) << whole.substr(0, whole.size() / 2);
      }
      const Outcome outcome = tool(train_command(folder, "a", {"--updates", "40", "--quiet"}));
      EXPECT_EQ(outcome.status, 1) << file << ": " << outcome.errors;
      EXPECT_THAT(outcome.errors, HasSubstr("remove " + newest + " to go on from the checkpoint before it"));
      EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
      std::ofstream(file, std::ios::binary) << whole;
    }
  }
  fs::remove_all(newest);
  EXPECT_EQ(tool(command("a", "40")).status, 0);
  EXPECT_EQ(final_weights(folder, "a"), final_weights(folder, "straight"));
}

// What a kill leaves under a temporary name goes with the next start; hidden files that are somebody's stay.
TEST(SlowTrain, LeftoversGoAndOthersFilesStay) {
  const ScratchFolder folder;
  write_text(folder);
  ASSERT_EQ(tool(train_command(folder, "a", {"--updates", "10"})).status, 0);
  const auto put = [&](const std::string& name) {
    std::ofstream(folder / ("a/" + name)) << "half";
    return folder / ("a/" + name);
  };
  const std::string dead = std::to_string([] {
    const pid_t gone = ::fork();
    if (gone == 0) ::_exit(0);
    ::waitpid(gone, nullptr, 0);
    return gone;
  }());
  const std::string notes = put(".notes.tmp");
  fs::create_directories(folder / ("a/checkpoints/.update-20.tmp." + dead));
  const std::vector<std::string> left = {put("checkpoints/.update-20.tmp." + dead + "/model.safetensors"),
                                         put("checkpoints/.update-5.tmp"), put(".training.json.tmp." + dead),
                                         put(".metrics.jsonl.tmp." + dead), put(".model.safetensors.tmp")};
  ASSERT_EQ(tool(train_command(folder, "a", {"--updates", "20"})).status, 0);
  EXPECT_TRUE(fs::exists(notes));
  for (const std::string& name : left) EXPECT_FALSE(fs::exists(name)) << name;
}

TEST(SlowTrain, ADivergingRunStopsWithOneLine) {
  const ScratchFolder folder;
  write_text(folder);
  const Outcome outcome = tool(train_command(
      folder, "a",
      {"--learning-rate", "1000", "--clip-norm", "0", "--warmup", "0", "--save-every", "1", "--quiet"}));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.errors, testing::AllOf(HasSubstr("the loss is not a number at update "),
                                             HasSubstr("(lines "), HasSubstr("lower --learning-rate")));
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1);
  const int64_t newest = newest_checkpoint(folder / "a");
  ASSERT_GT(newest, 0);
  EXPECT_THAT(outcome.errors, HasSubstr(fmt::format("the last good checkpoint is {}/a/checkpoints/update-{};",
                                                    folder.path().string(), newest)));
  EXPECT_NO_THROW(load_model_folder(folder / fmt::format("a/checkpoints/update-{}", newest)));
}

}  // namespace
}  // namespace mh
