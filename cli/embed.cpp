// multihead embed: a line in, its vector out; how alike texts are.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/comparison.h"
#include "cli/embed_lines.h"
#include "cli/embed_nearest.h"
#include "cli/head_changes.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/setting_flags.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/io/npy.h"
#include "multihead/tasks/embed_text.h"

namespace mh::cli {
namespace {

enum class VectorFormat { kJsonLines, kNpy, kRaw };

struct EmbedFlags {
  ModelFlags model;
  TextFlags text;
  VectorFormat format = VectorFormat::kJsonLines;
  std::vector<std::string> similarity;  // two texts
  NearestFlags nearest;
  std::string pairs;  // the file of second texts
  HeadChangeFlags changes;
  EmbedTextOptions options;
  SettingFlags settings;
};

std::string as_bytes(std::span<const float> numbers) {
  std::string bytes(numbers.size_bytes(), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

/// {"text": "...", "vector": [...]}, of a pair with "pair": "..." between them; the numbers are the shortest that
/// read back as the same float.
std::string json_lines(const EmbedBlock& block, ConstMatrixView rows) {
  std::string text;
  for (size_t i = 0; i < block.lines.size(); ++i) {
    const std::span<const float> row(rows.row(static_cast<int64_t>(i)), static_cast<size_t>(rows.cols));
    const std::string pair =
        block.pairs.empty() ? "" : fmt::format("\"pair\":{},", nlohmann::json(block.pairs[i]).dump());
    fmt::format_to(std::back_inserter(text), "{{\"text\":{},{}\"vector\":[{}]}}\n",
                   nlohmann::json(block.lines[i]).dump(), pair, fmt::join(row, ","));
  }
  return text;
}

EmbedInput input_of(const EmbedFlags& flags) {
  return {flags.text.input, flags.pairs};
}

EmbedTextOptions options_of(const EmbedFlags& flags, ChangedHeads& changed) {
  EmbedTextOptions options = flags.options;
  flags.settings.take(options);
  options.sites = changed.sites();
  options.remark = [](const std::string& line) { remark(line); };
  return options;
}

/// Each block when it is there, except for npy, whose header says how many rows follow.
void write_vectors(const EmbedFlags& flags, const SentenceModel& model, const EmbedTextOptions& options) {
  EmbedOutput output(flags.text.output);
  Embedder embedder(model, options);
  std::vector<float> numbers;
  EmbedInput input = input_of(flags);
  while (const auto block = input.next()) {
    const Tensor rows = embedder.vectors(*block);
    const std::span<const float> all(rows.data(), static_cast<size_t>(rows.size()));
    switch (flags.format) {
      case VectorFormat::kNpy:
        numbers.insert(numbers.end(), all.begin(), all.end());
        break;
      case VectorFormat::kRaw:
        output.write(as_bytes(all));
        break;
      case VectorFormat::kJsonLines:
        output.write(json_lines(*block, rows.view()));
        break;
    }
  }
  if (flags.format == VectorFormat::kNpy) {
    const std::array shape{std::ssize(numbers) / model.dimension, model.dimension};
    output.write(write_npy(shape, numbers));
  }
  output.finish();
}

/// For each line the cosine of its vectors with all heads and with changed ones.
void write_comparison(const EmbedFlags& flags, const SentenceModel& model, const EmbedTextOptions& options) {
  EmbedTextOptions whole = options, other = options;
  whole.sites = nullptr;
  other.remark = nullptr;  // the same lines are cut
  Embedder with_all(model, whole), with_changed(model, other, "embedded with changed heads");
  EmbedOutput output(flags.text.output);
  double sum = 0, least = std::numeric_limits<double>::infinity();
  size_t lines = 0, least_line = 0;
  EmbedInput input = input_of(flags);
  while (const auto block = input.next()) {
    const int64_t count = std::ssize(block->lines);
    Tensor both(2 * count, model.dimension);
    for (int64_t half = 0; half < 2; ++half) {
      const Tensor rows = (half == 0 ? with_all : with_changed).vectors(*block);
      std::copy_n(rows.data(), rows.size(), both.view().row(half * count));
    }
    std::string text;
    for (int64_t i = 0; i < count; ++i) {
      const double likeness = cosine(both.view(), i, count + i);
      text += fmt::format("{:.6f}  {}\n", likeness, block->lines[static_cast<size_t>(i)]);
      sum += likeness;
      ++lines;
      if (likeness < least) least = likeness, least_line = lines;
    }
    output.write(text);
  }
  output.write(lines == 0 ? "nothing to embed\n"
                          : fmt::format("\nmean cosine of {}: {:.6f}; the least: {:.6f}, of line {}\n",
                                        counted(static_cast<int64_t>(lines), "line"),
                                        sum / static_cast<double>(lines), least, least_line));
  output.finish();
}

void write_similarity(const EmbedFlags& flags, const SentenceModel& model, const EmbedTextOptions& options) {
  const Tensor rows =
      Embedder(model, options)
          .vectors({.lines = flags.similarity, .from = {.name = "--similarity", .one = "text"}});
  write_text(flags.text.output, fmt::format("{:.6f}\n", similarity_of(rows.view(), 0, 1, model.similarity)));
}

void run(const EmbedFlags& flags) {
  const bool writes_vectors = flags.similarity.empty() && !flags.nearest.given() && !flags.changes.compare;
  if (writes_vectors && flags.format != VectorFormat::kJsonLines && flags.text.output.empty() &&
      isatty(STDOUT_FILENO) == 1)
    throw UsageError("--format: npy and raw are bytes that no terminal shows; give -o FILE");
  for (const std::string& text : flags.similarity) check_utf8(text, "--similarity");
  if (flags.nearest.given()) check_nearest(flags.nearest);
  ChangedHeads changed = changed_heads(flags.changes);

  const SentenceModel model = load_sentences(flags.model);
  for (const std::string& line : model.remarks) remark(line);
  changed.check(model.folder);
  const EmbedTextOptions options = options_of(flags, changed);
  check_prompts(flags.nearest, model, options);  // before texts are read, perhaps from a terminal
  if (!flags.similarity.empty() || flags.nearest.given()) {
    if (flags.nearest.given()) {
      write_nearest(flags.nearest, input_of(flags), flags.text.output, model, options);
    } else {
      write_similarity(flags, model, options);
    }
    return remark(fmt::format("similarity is {}", formula_of(model.similarity)));
  }
  if (flags.changes.compare) return write_comparison(flags, model, options);
  write_vectors(flags, model, options);
}

}  // namespace

void add_embed(Verb& app) {
  auto flags = std::make_shared<EmbedFlags>();
  Verb* verb = app.add_subcommand("embed", "Turn each line into a vector, or compare lines by their vectors");
  add_model(*verb, flags->model)->required();
  add_text_flags(*verb, flags->text);
  auto* format = add_choice(
      *verb, "--format", flags->format,
      {{"jsonl", VectorFormat::kJsonLines}, {"npy", VectorFormat::kNpy}, {"raw", VectorFormat::kRaw}},
      "jsonl: a line with text and vector; npy: one array; raw: its float32 numbers");
  auto* similarity = verb->add_option("--similarity", flags->similarity,
                                      "Print the similarity of these two texts: the cosine, or the function "
                                      "that the model's config names")
                         ->expected(2)
                         ->type_name("A B")
                         ->excludes(verb->get_option("--input"))
                         ->excludes(format);
  auto* nearest = verb->add_option("--nearest", flags->nearest.count_and_file,
                                   "Print the K lines of FILE that are nearest to each input line instead, "
                                   "with similarity and number")
                      ->expected(2)
                      ->type_name("K FILE")
                      ->excludes(similarity)
                      ->excludes(format);
  auto* vectors =
      verb->add_option("--vectors", flags->nearest.vectors,
                       "Vectors of the lines of --nearest that were saved before (-o and --format npy)")
          ->needs(nearest);
  verb->add_option("--document-prompt-name", flags->nearest.document_prompt,
                   "Put the prompt of this name before the lines of --nearest, such as document")
      ->type_name("NAME")
      ->needs(nearest)
      ->excludes(vectors);
  verb->add_option("--input-pair", flags->pairs,
                   "Second texts, line by line, which an encoder such as BERT reads together with "
                   "the first ones")
      ->excludes(similarity)
      ->excludes(nearest);
  flags->settings.add(*verb, flags->options);
  verb->get_option("--prompt-text")->may_be_empty();
  add_head_change_flags(*verb, flags->changes);
  verb->add_flag("--compare", flags->changes.compare,
                 "With --mute, --gate or --replace: print the cosine of each line's vectors with and without "
                 "the change")
      ->excludes(similarity)
      ->excludes(nearest)
      ->excludes(format);
  name_values(*verb, "FILE", {"--vectors", "--input-pair"});
  rare_flags(*verb, {"--input-pair"});
  verb->footer(
      "Example:\n"
      "  multihead embed minilm -i test.en -o test.npy --format npy --precision fast\n"
      "  multihead embed minilm \\\n"
      "    --similarity 'two dogs run .' 'a pair of dogs is running .'\n"
      "  echo 'two dogs run .' | multihead embed minilm --nearest 3 test.en\n"
      "  echo 'two dogs run .' | multihead embed minilm --nearest 3 test.en \\\n"
      "    --vectors test.npy\n"
      "  echo 'who runs ?' | multihead embed embeddinggemma --nearest 3 test.en \\\n"
      "    --prompt-name query --document-prompt-name document\n"
      "  multihead embed minilm -i test.en --mute 'encoder.5.self_attention.*' \\\n"
      "    --compare");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
