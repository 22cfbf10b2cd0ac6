// Runs the built tool as a process that can be sent signals, and small trainings with it.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/base/random.h"
#include "tests/cli/run_tool.h"
#include "tests/support/places.h"

namespace mh {

struct Outcome {
  int status = 0;  // exit status, or 128 + signal
  std::string errors, output;
};

class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, rlim_t largest_file = RLIM_INFINITY)
      : errors_(scratch_.write("err", "")), output_(scratch_.write("out", "")) {
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ == 0) {
      if (largest_file != RLIM_INFINITY) {
        const rlimit limit{largest_file, largest_file};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        ::signal(SIGXFSZ, SIG_IGN);  // then write() fails with EFBIG, as a full disk does with ENOSPC
      }
      // A test in the background inherits that some are ignored.
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
      ::dup2(::open(errors_.c_str(), O_WRONLY), 2);
      ::dup2(::open(output_.c_str(), O_WRONLY), 1);
      std::vector<char*> argv{const_cast<char*>("multihead")};
      for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      ::execv(tool_file().c_str(), argv.data());
      ::_exit(127);
    }
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
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
  ScratchFolder scratch_;
  std::string errors_, output_;
  pid_t pid_ = -1;
  int status_ = 0;
};

inline Outcome tool(const std::vector<std::string>& arguments, rlim_t largest_file = RLIM_INFINITY) {
  return Process(arguments, largest_file).wait();
}

// 200 lines of a toy language pair.
inline void write_text(const ScratchFolder& folder) {
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

inline std::vector<std::string> train_command(const ScratchFolder& folder, const std::string& model,
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

inline std::string final_weights(const ScratchFolder& folder, const std::string& model) {
  return read_file(folder / (model + "/model.safetensors"));
}

inline void wait_for(const std::function<bool()>& condition, Process& process) {
  while (process.running() && !condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

inline int64_t newest_checkpoint(const std::string& model) {
  int64_t newest = -1;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(model + "/checkpoints", code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("update-")) newest = std::max<int64_t>(newest, std::stoll(name.substr(7)));
  }
  return newest;
}

}  // namespace mh
