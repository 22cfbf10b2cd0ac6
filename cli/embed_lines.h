// The lines that `multihead embed` reads, block by block, and their vectors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/progress.h"
#include "multihead/io/lines.h"
#include "multihead/tasks/embed_text.h"

namespace mh::cli {

/// Some lines, with their second texts if there are any.
struct EmbedBlock {
  std::vector<std::string> lines, pairs = {};
  LinesFrom from = {};  // what they are called
  bool last = true;     // no lines come after these
};

class EmbedInput {
 public:
  /// The lines of a file, or of standard input when `path` is empty; pairs: the file of their second texts, or
  /// empty.
  EmbedInput(const std::string& path, const std::string& pairs);

  /// Nothing when all lines were given. Throws FormatError when there are not as many second texts as lines.
  std::optional<EmbedBlock> next();

 private:
  std::unique_ptr<LineReader> reader_;
  std::string pairs_file_;
  std::vector<std::string> pairs_;
  LinesFrom from_;
};

/// Output that appears as it comes on standard output, and as a whole at the end in a file.
class EmbedOutput {
 public:
  explicit EmbedOutput(const std::string& path) : path_(path) {}
  void write(const std::string& output) {
    if (path_.empty()) return write_text("", output);
    whole_ += output;
  }
  void finish() {
    if (!path_.empty()) write_text(path_, whole_);
  }

 private:
  const std::string& path_;
  std::string whole_;
};

/// The vectors of blocks, with one counter for all of them.
class Embedder {
 public:
  /// options: what they have in common; what_is_done: "embedded". `model` must outlive this.
  Embedder(const SentenceModel& model, EmbedTextOptions options,
           const std::string& what_is_done = "embedded");

  Tensor vectors(const EmbedBlock& block);

 private:
  const SentenceModel& model_;
  EmbedTextOptions options_;
  Progress progress_;
  int64_t done_ = 0;
};

}  // namespace mh::cli
