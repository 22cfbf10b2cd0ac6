// An ArmRunner of models so small that a run takes part of a second, and the runs that it kept.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/studies/arms.h"
#include "multihead/base/file.h"
#include "multihead/io/lines.h"
#include "tests/support/scratch_folder.h"

namespace mh::test {

/// One layer on each side, four heads of 4 numbers, two seeds, eight updates.
inline SizeSettings tiny_settings() {
  SizeSettings s = size_settings(StudySize::kStandard);
  s.grammar.train = 300, s.grammar.valid = s.grammar.test = 20;
  s.model.encoder_layers = s.model.decoder_layers = 1;
  s.model.d_model = 16;
  s.model.encoder_ff = s.model.decoder_ff = 20;
  s.updates = 8, s.batch_tokens = 200, s.warmup = 2;
  s.seeds = {1, 2};
  return s;
}

/// Writes the six files of "real" text that StudySize::kPaper reads.
inline void write_tiny_text(const std::filesystem::path& folder) {
  for (const std::string part : {"train", "val", "test_2016_flickr"}) {
    for (const std::string language : {"en", "de"}) {
      std::string text;
      for (int line = 0; line < 20; ++line) text += "a man and " + std::to_string(line) + " dogs run .\n";
      write_file_atomically(folder / (part + "." + language + ".gz"), text);
    }
  }
}

class TinyRunner {
 public:
  explicit TinyRunner(const SizeSettings& settings = tiny_settings(), StudySize size = StudySize::kStandard,
                      std::filesystem::path data = {})
      : runner_(
            {.size = size,
             .settings = settings,
             .data = std::move(data),
             .runs = folder_ / "runs",
             .watcher = {.step = [this](const std::string& line) { steps.push_back(line); }, .stop = {}}}) {}

  ArmRunner& operator*() { return runner_; }
  ArmRunner* operator->() { return &runner_; }

  /// The lines of kept runs, of all studies: {"arm": ..., "is": {what differs from the defaults}, ...}.
  std::vector<nlohmann::json> kept() const {
    std::vector<nlohmann::json> runs;
    if (!std::filesystem::exists(folder_ / "runs")) return runs;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "runs")) {
      if (file.path().extension() != ".jsonl") continue;
      for (const std::string& line : read_lines(file.path().string()))
        runs.push_back(nlohmann::json::parse(line));
    }
    return runs;
  }

  std::vector<std::string> steps;  // what the runner said, one line for each run

 private:
  ScratchFolder folder_;
  ArmRunner runner_;
};

}  // namespace mh::test
