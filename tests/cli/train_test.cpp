// multihead train, as a process: kills, changed flags, bad input.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/base/random.h"
#include "multihead/models/model_folder.h"

namespace mh {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(fs::temp_directory_path() / fmt::format("{}.{}", name, ::getpid())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code code;
    fs::remove_all(path_, code);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

struct Outcome {
  int status = 0;  // exit status, or 128 + signal
  std::string errors, output;
};

class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, rlim_t largest_file = RLIM_INFINITY)
      : errors_(fs::temp_directory_path() / fmt::format("mh_stderr.{}.{}", ::getpid(), ++made_)),
        output_(errors_.string() + ".out") {
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ == 0) {
      if (largest_file != RLIM_INFINITY) {
        const rlimit limit{largest_file, largest_file};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        ::signal(SIGXFSZ, SIG_IGN);  // then write() fails with EFBIG, as a full disk does with ENOSPC
      }
      ::dup2(::open(errors_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      ::dup2(::open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      std::vector<char*> argv{const_cast<char*>(MULTIHEAD_BINARY)};
      for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      ::execv(MULTIHEAD_BINARY, argv.data());
      ::_exit(127);
    }
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
    std::error_code code;
    fs::remove(errors_, code);
    fs::remove(output_, code);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Only while it is our child: kill(-1) would go to every process there is.
  void kill(int signal) const {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  bool running() {
    if (pid_ <= 0) return false;
    if (::waitpid(pid_, &status_, WNOHANG) == 0) return true;
    pid_ = -1;
    return false;
  }
  Outcome wait() {
    if (pid_ > 0) ::waitpid(pid_, &status_, 0);
    pid_ = -1;
    const int status = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
    return {status, read_file(errors_), read_file(output_)};
  }

 private:
  static inline int made_ = 0;
  fs::path errors_, output_;
  pid_t pid_ = -1;
  int status_ = 0;
};

Outcome tool(const std::vector<std::string>& arguments, rlim_t largest_file = RLIM_INFINITY) {
  return Process(arguments, largest_file).wait();
}

// 200 lines of a toy language pair.
void write_text(const Folder& folder) {
  constexpr const char* kWords[][2] = {{"red", "rot"}, {"dog", "hund"},  {"sees", "sieht"},
                                       {"a", "ein"},   {"cat", "katze"}, {"big", "gross"},
                                       {"and", "und"}, {"house", "haus"}};
  Random random(3);
  for (const auto& [name, lines] : {std::pair{"train", 200}, std::pair{"valid", 11}}) {
    std::string source, target;
    for (int i = 0; i < lines; ++i) {
      for (uint32_t w = 0; w < 2 + random.below(6); ++w) {
        const auto& word = kWords[random.below(8)];
        source += std::string(word[0]) + " ";
        target += std::string(word[1]) + " ";
      }
      source += "\n";
      target += "\n";
    }
    std::ofstream(folder / (std::string(name) + ".en")) << source;
    std::ofstream(folder / (std::string(name) + ".de")) << target;
  }
}

std::vector<std::string> train_command(const Folder& folder, const std::string& model,
                                       const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = {"train",
                                      "--train-source",
                                      folder / "train.en",
                                      "--train-target",
                                      folder / "train.de",
                                      "--valid-source",
                                      folder / "valid.en",
                                      "--valid-target",
                                      folder / "valid.de",
                                      "--model",
                                      folder / model,
                                      "--d-model",
                                      "16",
                                      "--d-ff",
                                      "24",
                                      "--encoder-layers",
                                      "2",
                                      "--decoder-layers",
                                      "1",
                                      "--heads",
                                      "2",
                                      "--batch-tokens",
                                      "150",
                                      "--validate-every",
                                      "20",
                                      "--validate-beam",
                                      "2",
                                      "--save-every",
                                      "10",
                                      "--average",
                                      "3",
                                      "--average-of",
                                      "last",
                                      "--vocabulary-size",
                                      "60",
                                      "--dropout",
                                      "0.1",
                                      "--attention-dropout",
                                      "0.1",
                                      "--warmup",
                                      "50"};
  command.insert(command.end(), {"--updates", "130"});
  for (const std::string& flag : more) {  // they take the place of those above
    const auto found = std::find(command.begin(), command.end(), flag);
    if (flag.starts_with("--") && found != command.end()) command.erase(found, found + 2);
  }
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

std::string final_weights(const Folder& folder, const std::string& model) {
  return read_file(folder / (model + "/model.safetensors"));
}

void wait_for(const std::function<bool()>& condition, Process& process) {
  while (process.running() && !condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int64_t newest_checkpoint(const std::string& model) {
  int64_t newest = -1;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(model + "/checkpoints", code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("update-")) newest = std::max<int64_t>(newest, std::stoll(name.substr(7)));
  }
  return newest;
}

TEST(SlowTrain, KillsAtAnyMomentEndWithTheSameModel) {
  Folder folder("mh_train_kill");
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

TEST(SlowTrain, SigtermSavesExits143AndGoesOn) {
  Folder folder("mh_train_term");
  write_text(folder);
  ASSERT_EQ(tool(train_command(folder, "straight")).status, 0);
  for (const int signal : {SIGTERM, SIGINT, SIGTERM}) {
    Process process(train_command(folder, "stopped"));
    const int64_t before = newest_checkpoint(folder / "stopped");
    wait_for([&] { return newest_checkpoint(folder / "stopped") > before; }, process);
    process.kill(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status, 143) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(fmt::format("update-{}; the same command goes on",
                                                      newest_checkpoint(folder / "stopped"))));
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
  Folder folder("mh_train_more");
  write_text(folder);
  ASSERT_EQ(tool(train_command(folder, "a", {"--updates", "20"})).status, 0);
  const Outcome more = tool(train_command(folder, "a", {"--updates", "40"}));
  EXPECT_EQ(more.status, 0) << more.errors;
  EXPECT_EQ(newest_checkpoint(folder / "a"), 40);

  const Outcome from = tool(train_command(folder, "b", {"--updates", "5", "--init-from", folder / "a"}));
  EXPECT_EQ(from.status, 0) << from.errors;
  const Outcome shape = tool(train_command(folder, "c", {"--init-from", folder / "a", "--d-ff", "25"}));
  EXPECT_EQ(shape.status, 2) << shape.errors;

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
  Folder folder("mh_train_full");
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

TEST(SlowTrain, ADivergingRunStopsWithOneLine) {
  Folder folder("mh_train_nan");
  write_text(folder);
  const Outcome outcome =
      tool(train_command(folder, "a",
                         {"--learning-rate", "1000", "--clip-norm", "0", "--warmup", "0", "--norm", "pre",
                          "--adam-epsilon", "1e-30", "--quiet", "--updates", "3000"}));
  if (outcome.status == 0) GTEST_SKIP() << "the model survived a learning rate of 1000";
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("not a number"));
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1);
}

TEST(Train, RefusesBadInputInOneLine) {
  Folder folder("mh_train_bad");
  write_text(folder);
  std::ofstream(folder / "short.de") << "hund\n";
  std::ofstream(folder / "empty.en");
  std::ofstream(folder / "latin1.en") << "ok\n\xe4\n";
  std::ofstream(folder / "a_file") << "x";
  fs::create_directories(folder / "foreign");
  std::ofstream(folder / "foreign/config.json") << "{}";
  struct Case {
    std::vector<std::string> flags;
    int status;
    const char* message;
  };
  const std::vector<Case> cases = {
      {{"--train-target", folder / "short.de"}, 1, "200 lines"},
      {{"--train-source", folder / "empty.en"}, 1, "is empty"},
      {{"--train-source", folder / "latin1.en"}, 1, "latin1.en"},
      {{"--train-source", folder / "missing.en"}, 1, "missing.en"},
      {{"--model", folder / "a_file"}, 1, "is a file"},
      {{"--model", "/proc/no/such"}, 1, "/proc/no/such"},
      {{"--model", folder / "foreign"}, 2, "--init-from"},
      {{"--dropout", "1.5"}, 2, "--dropout"},
      {{"--dropout", "abc"}, 2, "--dropout"},
      {{"--heads", "0"}, 2, "--heads"},
      {{"--heads", "5"}, 2, "head"},
      {{"--norm", "middle"}, 2, "--norm"},
      {{"--preset", "huge"}, 2, "huge"},
      {{"--no-such-flag"}, 2, "--no-such-flag"},
      {{"--max-length", "2"}, 2, "--max-length"},
      {{"--tokenizer", folder / "train.en"}, 1, "train.en"},
      {{"--init-from", folder / "foreign"}, 1, "foreign"},
      {{"--config", folder / "foreign/none.json"}, 1, "none.json"},
  };
  for (const Case& bad : cases) {
    const Outcome outcome = tool(train_command(folder, "m", bad.flags));
    EXPECT_EQ(outcome.status, bad.status) << bad.flags[0] << ": " << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(bad.message));
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  }
}

TEST(Train, ConfigFilesHoldWhatFlagsHold) {
  Folder folder("mh_train_config");
  const Outcome first =
      tool({"train", "--preset", "small", "--seed", "5", "--norm", "pre", "--lowercase", "--dump-config"});
  ASSERT_EQ(first.status, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr("\"d-model\": 256"));
  std::ofstream(folder / "run.json") << first.output;
  const Outcome second = tool({"train", "--config", folder / "run.json", "--seed", "6", "--dump-config"});
  ASSERT_EQ(second.status, 0) << second.errors;
  EXPECT_THAT(second.output, HasSubstr("\"seed\": 6"));
  EXPECT_THAT(second.output, HasSubstr("\"norm\": \"pre\""));
  EXPECT_THAT(second.output, HasSubstr("\"lowercase\": true"));
  const Outcome help = tool({"train", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, HasSubstr("Example:"));
  std::ofstream(folder / "typo.json") << "{\"sed\": 1}";
  const Outcome typo = tool({"train", "--config", folder / "typo.json", "--dump-config"});
  EXPECT_EQ(typo.status, 1);
  EXPECT_THAT(typo.errors, HasSubstr("sed"));
}

}  // namespace
}  // namespace mh
