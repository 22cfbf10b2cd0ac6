// `multihead embed --nearest`: the lines of a file that are most like each input line.
#pragma once

#include <string>
#include <vector>

#include "cli/embed_lines.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/tasks/embed_text.h"

namespace mh::cli {

struct NearestFlags {
  std::vector<std::string> count_and_file;  // of --nearest; empty: it was not given
  std::string vectors;                      // of that file
  std::string document_prompt;              // the name of that of its lines

  bool given() const { return !count_and_file.empty(); }
};

/// Throws UsageError unless a number and a file were given.
void check_nearest(const NearestFlags& flags);
/// options: of input lines, from which those of the file's lines follow. Throws UsageError on prompts that the model does not
/// have; names those of queries and documents that were not asked for in a remark.
void check_prompts(const NearestFlags& flags, const SentenceModel& model, const EmbedTextOptions& options);
/// output: a file, or empty for standard output.
void write_nearest(const NearestFlags& flags, EmbedInput input, const std::string& output,
                   const SentenceModel& model, const EmbedTextOptions& options);

}  // namespace mh::cli
