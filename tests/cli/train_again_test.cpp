// multihead train --model DIR: going on with the settings that a run keeps, and using a run that was stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "multihead/folders/model_folder.h"
#include "tests/cli/training.h"
#include "tests/support/holding_process.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

std::vector<std::string> without(std::vector<std::string> command, const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) {
    const auto found = std::find(command.begin(), command.end(), flag);
    command.erase(found, found + 2);
  }
  return command;
}

long lines_in(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST(TrainAgain, TheModelAloneGoesOnWithWhatTheRunKeeps) {
  const ScratchFolder folder;
  write_text(folder);
  ASSERT_EQ(tool(train_command(folder, "straight", {"--updates", "50"})).status, 0);
  ASSERT_EQ(tool(train_command(folder, "a", {"--updates", "20"})).status, 0);

  Outcome outcome = tool({"train", "--model", folder / "a", "--updates", "50"});
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("going on from " + folder / "a/checkpoints/update-20"));
  EXPECT_EQ(final_weights(folder, "a"), final_weights(folder, "straight"));

  // What was raised is kept, too, and so is the run when its folder is moved.
  fs::rename(folder / "a", folder / "moved");
  outcome = tool({"train", "--model", folder / "moved"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("is finished: all updates made after 50 updates"));
  outcome = tool({"train", "--model", folder / "moved", "--epochs", "1"});
  EXPECT_THAT(outcome.errors, HasSubstr("is finished"));
}

TEST(TrainAgain, OnlyWhatContradictsTheRunIsRefusedAndNamed) {
  const ScratchFolder folder;
  write_text(folder);
  ASSERT_EQ(tool(train_command(folder, "a", {"--updates", "10"})).status, 0);
  const std::string before = final_weights(folder, "a");
  const Outcome seed = tool({"train", "--model", folder / "a", "--updates", "20", "--seed", "7"});
  EXPECT_EQ(seed.status, 2);
  EXPECT_THAT(seed.errors,
              HasSubstr("at update 10: --seed was 1, is now 7; leave out what differs to go on"));
  EXPECT_EQ(lines_in(seed.errors), 1);
  EXPECT_LT(seed.errors.size(), 250 + (folder / "a").size());
  const Outcome two =
      tool({"train", "--model", folder / "a", "--d-model", "32", "--norm", "pre", "--heads", "2"});
  EXPECT_EQ(two.status, 2);
  EXPECT_THAT(two.errors, AllOf(HasSubstr("--d-model was 16, is now 32; --norm was post, is now pre; leave"),
                                Not(HasSubstr("--heads"))));
  const Outcome text = tool({"train", "--model", folder / "a", "--train-source", folder / "train.de"});
  EXPECT_EQ(text.status, 2);
  EXPECT_THAT(text.errors, HasSubstr("the text is not the one the run was started with"));
  EXPECT_EQ(final_weights(folder, "a"), before);
}

TEST(TrainAgain, PathsAreFoundFromEverywhereAndAfterAStopBeforeTheFirstCheckpoint) {
  const ScratchFolder folder;
  write_text(folder);
  std::string line = "cd '" + folder.path().string() + "' && \"$MULTIHEAD\" train";
  const std::string with_slash = folder / "";
  for (const std::string& word : train_command(folder, "a", {"--updates", "10"})) {
    if (word == "train") continue;
    line += " '" + (word.starts_with(with_slash) ? word.substr(with_slash.size()) : word) + "'";
  }
  const ToolResult first = run_shell(line);
  ASSERT_EQ(first.status, 0) << first.err;
  const std::string weights = final_weights(folder, "a");
  // As a kill leaves it before there is anything to go on from.
  for (const char* update : {"update-10"}) fs::remove_all(folder / ("a/checkpoints/" + std::string(update)));
  fs::remove(folder / "a/model.safetensors");
  const Outcome anew = tool({"train", "--model", folder / "a"});
  ASSERT_EQ(anew.status, 0) << anew.errors;
  EXPECT_THAT(anew.errors, Not(HasSubstr("going on")));
  EXPECT_EQ(final_weights(folder, "a"), weights);
}

TEST(TrainAgain, WithoutARunItSaysWhatIsMissing) {
  const ScratchFolder folder;
  write_text(folder);
  Outcome outcome = tool({"train", "--model", folder / "new"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("--train-source and --train-target are needed"),
                                    HasSubstr(folder / "new holds no training that could go on")));
  EXPECT_FALSE(fs::exists(folder / "new"));

  // A run of a time when settings were not kept.
  ASSERT_EQ(tool(train_command(folder, "old", {"--updates", "10"})).status, 0);
  fs::remove(folder / "old/checkpoints/settings.json");
  outcome = tool({"train", "--model", folder / "old"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.errors,
              HasSubstr("does not keep the settings of its training: give all of them again"));
  outcome = tool(train_command(folder, "old", {"--updates", "12"}));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(tool({"train", "--model", folder / "old"}).status, 0);  // now they are kept

  std::ofstream(folder / "old/checkpoints/settings.json") << "{\"seed\": \"x\"}";
  outcome = tool({"train", "--model", folder / "old"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("settings.json: seed: expected an integer"));
  EXPECT_THAT(outcome.errors, HasSubstr("remove it and give all settings of the run again"));
}

TEST(TrainAgain, SettingsOfARunAreDumpedAndReadBack) {
  const ScratchFolder folder;
  write_text(folder);
  ASSERT_EQ(tool(train_command(folder, "a", {"--updates", "10", "--geometry", "multi-query"})).status, 0);
  const Outcome dumped = tool({"train", "--model", folder / "a", "--updates", "14", "--dump-config"});
  ASSERT_EQ(dumped.status, 0) << dumped.errors;
  EXPECT_THAT(dumped.output,
              AllOf(HasSubstr("\"d-model\": 16"), HasSubstr("\"updates\": 14"),
                    HasSubstr("\"geometry\": \"multi-query\""), HasSubstr(folder / "train.en")));
  const std::string file = folder.write("run.json", dumped.output);
  EXPECT_EQ(tool({"train", "--config", file, "--dump-config"}).output, dumped.output);
  const Outcome on = tool({"train", "--config", file});
  EXPECT_EQ(on.status, 0) << on.errors;
  EXPECT_EQ(newest_checkpoint(folder / "a"), 14);
}

TEST(TrainAgain, DamagedStatesAreRefusedAndNothingIsLost) {
  const ScratchFolder folder;
  write_text(folder);
  ASSERT_EQ(tool(train_command(folder, "a", {"--updates", "20"})).status, 0);
  const std::string file = folder / "a/checkpoints/update-20/training_state.json", whole = read_file(file);
  const std::string weights = final_weights(folder, "a");
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json state = nlohmann::json::parse(whole);
    state[key] = value;
    std::ofstream(file) << state.dump();
    const Outcome outcome = tool({"train", "--model", folder / "a", "--updates", "40", "--quiet"});
    EXPECT_EQ(outcome.status, 1) << outcome.errors;
    EXPECT_EQ(lines_in(outcome.errors), 1) << outcome.errors;
    EXPECT_EQ(final_weights(folder, "a"), weights);
    return outcome.errors;
  };
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"batch", 99999999},
                                   {"epoch", 2147483647},
                                   {"target_tokens", std::numeric_limits<int64_t>::max()},
                                   {"smoothed_loss", -1e308}}) {
    EXPECT_THAT(refused(key, value),
                AllOf(HasSubstr(key), HasSubstr("training_state.json"),
                      HasSubstr("remove " + folder / "a/checkpoints/update-20 to go on")));
  }
  // The seed that the state names is not the one that the run was started with.
  nlohmann::json settings = nlohmann::json::parse(whole)["settings"];
  for (auto& setting : settings) {
    if (setting["name"] == "seed") setting["value"] = "5";
  }
  EXPECT_THAT(
      refused("settings", settings),
      AllOf(HasSubstr("contradicts the settings of its run: --seed was 5, is now 1"), HasSubstr("remove ")));
  fs::remove_all(folder / "a/checkpoints/update-20");
  EXPECT_EQ(tool({"train", "--model", folder / "a"}).status, 0);
  EXPECT_EQ(final_weights(folder, "a"), weights);
}

TEST(TrainAgain, ALockIsWaitedForWhileItsHolderEnds) {
  const ScratchFolder folder;
  write_text(folder);
  fs::create_directories(folder / "a/checkpoints");
  const test::HoldingProcess holder(folder / "a/checkpoints/.lock", std::chrono::seconds(1));
  const Outcome outcome = tool(train_command(folder, "a", {"--updates", "3"}));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("another process holds " + folder / "a; waiting for it to end"));
}

TEST(TrainAgain, APipedLogShowsHowFarItIs) {
  const ScratchFolder folder;
  write_text(folder);
  const Outcome outcome = tool(train_command(folder, "a", {"--updates", "101"}));
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  for (const char* line : {"update 1 of 101, epoch 1, loss ", "update 10 of 101,", "update 100 of 101,"})
    EXPECT_THAT(outcome.errors, HasSubstr(line));
}

TEST(TrainAgain, AFolderWithOtherThingsIsRefused) {
  const ScratchFolder folder;
  write_text(folder);
  fs::create_directories(folder / "photos");
  folder.write("photos/cat.png", "x");
  Outcome outcome = tool(train_command(folder, "photos", {"--updates", "3"}));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.errors,
              HasSubstr("photos holds 'cat.png', which no training wrote; name a new folder with --model"));
  EXPECT_FALSE(fs::exists(folder / "photos/checkpoints"));
  fs::create_directories(folder / "others/checkpoints");
  folder.write("others/checkpoints/epoch_3.pt", "x");
  EXPECT_EQ(tool(train_command(folder, "others", {"--updates", "3"})).status, 1);

  fs::create_directories(folder / "empty");
  folder.write("empty/.keep", "");
  outcome = tool(train_command(folder, "empty", {"--updates", "3"}));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  folder.write("empty/notes", "mine");  // a run's folder may hold more
  EXPECT_EQ(tool({"train", "--model", folder / "empty", "--updates", "5"}).status, 0);
  EXPECT_EQ(folder.read("empty/notes"), "mine");
}

// Without validation the final folder gets its model at the end; until then its newest checkpoint is the model.
TEST(SlowTrainAgain, AStoppedRunTranslates) {
  const ScratchFolder folder;
  write_text(folder);
  std::vector<std::string> command =
      without(train_command(folder, "two", {"--updates", "100000"}), {"--valid-source", "--valid-target"});
  Process process(command);
  wait_for([&] { return newest_checkpoint(folder / "two") > 0; }, process);
  process.kill(SIGINT);
  EXPECT_EQ(process.wait().status, 128 + SIGINT);
  ASSERT_FALSE(fs::exists(folder / "two/config.json"));
  const std::string newest =
      folder / "two/checkpoints/update-" + std::to_string(newest_checkpoint(folder / "two"));
  const std::string remark =
      "multihead: " +
      folder / "two has no finished model yet; taking the newest checkpoint of its training, " + newest +
      "\n";
  for (const std::vector<std::string>& use : std::vector<std::vector<std::string>>{
           {"info", folder / "two"},
           {"translate", "--model", folder / "two", "-i", folder / "valid.en"},
           {"score", "--model", folder / "two", "--source", folder / "valid.en", "--target",
            folder / "valid.de"},
           {"heads", folder / "two", "-i", folder / "valid.en"},
           {"trace", folder / "two", "--attention", "encoder.0.self_attention", "--text", "a dog"},
           {"ledger", folder / "two"},
           {"convert", folder / "two", "--out", folder / "merged", "--to", "merged"}}) {
    const Outcome outcome = tool(use);
    EXPECT_EQ(outcome.status, 0) << use[0] << ": " << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(remark)) << use[0];
    EXPECT_FALSE(outcome.output.empty()) << use[0];
  }
  const Outcome quiet = tool({"translate", "--quiet", "--model", folder / "two", "-i", folder / "valid.en"});
  EXPECT_EQ(quiet.errors, "");
  EXPECT_EQ(quiet.output, tool({"translate", "--model", newest, "-i", folder / "valid.en"}).output);

  const Outcome begun =
      tool(train_command(folder, "next", {"--updates", "2", "--init-from", folder / "two"}));
  EXPECT_EQ(begun.status, 0) << begun.errors;
  EXPECT_THAT(begun.errors, HasSubstr("taking the newest checkpoint"));

  // And the run itself ends when it is asked to: then the folder has a model of its own.
  const Outcome end = tool({"train", "--model", folder / "two", "--updates", "1"});
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_TRUE(fs::exists(folder / "two/config.json"));
  const Outcome finished = tool({"translate", "--model", folder / "two", "-i", folder / "valid.en"});
  EXPECT_EQ(finished.status, 0);
  EXPECT_EQ(finished.errors, "");
}

}  // namespace
}  // namespace mh
