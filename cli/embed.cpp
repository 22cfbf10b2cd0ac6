// multihead embed: a line in, its vector out; how alike texts are.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
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
#include "multihead/tasks/saved_vectors.h"

namespace mh::cli {
namespace {

enum class VectorFormat { kJsonLines, kNpy, kRaw };

struct EmbedFlags {
  ModelFlags model;
  TextFlags text;
  VectorFormat format = VectorFormat::kJsonLines;
  std::vector<std::string> similarity;  // two texts
  std::vector<std::string> nearest;     // how many, and the file
  std::string vectors;                  // of that file
  std::string pairs;                    // the file of second texts
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

EmbedInput input_of(const EmbedFlags& flags) {
  return {flags.text.input, flags.pairs};
}

EmbedTextOptions options_of(const EmbedFlags& flags, SiteValues& changed) {
  EmbedTextOptions options = flags.options;
  flags.settings.take(options);
  if (!changed.empty()) options.sites = &changed;
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

/// What is printed where it is not the cosine.
void remark_similarity(const SentenceModel& model) {
  static constexpr std::pair<const char*, Similarity> kFormulas[] = {
      {"the dot product", Similarity::kDot},
      {"minus the Euclidean distance", Similarity::kEuclidean},
      {"minus the Manhattan distance", Similarity::kManhattan}};
  for (const auto& [formula, similarity] : kFormulas) {
    if (similarity == model.similarity)
      remark(fmt::format("similarity is {}, as config_sentence_transformers.json says", formula));
  }
}

/// The prompts with which sentence-transformers encodes queries and documents, but for that of every text.
void remark_prompts(const SentenceModel& model) {
  std::vector<std::string> found;
  for (const char* name : {"query", "document", "passage", "corpus"}) {
    if (std::find(model.prompt_names.begin(), model.prompt_names.end(), name) != model.prompt_names.end())
      found.push_back(fmt::format("\"{}\"", name));
  }
  if (found.empty()) return;
  const bool one = found.size() == 1;
  remark(fmt::format("the model has the prompt{} {}, which --nearest does not put before a text; {}",
                     one ? "" : "s", fmt::join(found, " and "),
                     model.prompt.empty()
                         ? fmt::format("write {} there if it was trained so", one ? "it" : "them")
                         : "each has that of default_prompt_name"));
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

/// What --nearest was given.
struct Nearest {
  int64_t count = 0;
  std::string file;
};
Nearest nearest_of(const std::vector<std::string>& given) {
  int64_t count = 0;
  const std::string& text = given[0];
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || stop != text.data() + text.size() || count < 1) {
    throw UsageError(fmt::format(
        "--nearest: expected a number of lines, at least 1, and a file; got {} and {}", text, given[1]));
  }
  return {count, given[1]};
}

void write_nearest(const EmbedFlags& flags, const SentenceModel& model, const EmbedTextOptions& options) {
  const Nearest wanted = nearest_of(flags.nearest);
  const std::vector<std::string> candidates = read_text(wanted.file);
  if (candidates.empty())
    throw FormatError(wanted.file + " is empty; give sentences to look among, one a line");
  Embedder embedder(model, options);
  const Tensor rows = flags.vectors.empty()
                          ? embedder.vectors({.lines = candidates, .from = {.name = wanted.file}})
                          : read_vectors(flags.vectors, {.lines_name = wanted.file,
                                                         .lines = std::ssize(candidates),
                                                         .dimension = model.dimension});
  EmbedOutput output(flags.text.output);
  EmbedInput input = input_of(flags);
  while (const auto block = input.next()) {
    const Tensor queries = embedder.vectors(*block);
    std::string text;
    const auto nearest = nearest_rows(queries.view(), rows.view(), wanted.count, model.similarity);
    for (size_t i = 0; i < block->lines.size(); ++i) {
      text += block->lines[i] + "\n";
      for (const Neighbour& neighbour : nearest[i]) {
        text += fmt::format("{:9.4f}  {:>6}  {}\n", neighbour.similarity, neighbour.row + 1,
                            candidates[static_cast<size_t>(neighbour.row)]);
      }
    }
    output.write(text);
  }
  output.finish();
}

void run(const EmbedFlags& flags) {
  const bool writes_vectors = flags.similarity.empty() && flags.nearest.empty() && !flags.changes.compare;
  if (writes_vectors && flags.format != VectorFormat::kJsonLines && flags.text.output.empty() &&
      isatty(STDOUT_FILENO) == 1)
    throw UsageError("--format: npy and raw are bytes that no terminal shows; give -o FILE");
  for (const std::string& text : flags.similarity) check_utf8(text, "--similarity");
  if (!flags.nearest.empty()) nearest_of(flags.nearest);
  SiteValues changed = changed_heads(flags.changes);

  const SentenceModel model = load_sentences(flags.model);
  for (const std::string& line : model.remarks) remark(line);
  model.folder.model->check(changed);
  const EmbedTextOptions options = options_of(flags, changed);
  if (!flags.similarity.empty() || !flags.nearest.empty()) remark_similarity(model);
  if (!flags.nearest.empty()) remark_prompts(model);
  if (!flags.similarity.empty()) return write_similarity(flags, model, options);
  if (!flags.nearest.empty()) return write_nearest(flags, model, options);
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
  auto* nearest = verb->add_option("--nearest", flags->nearest,
                                   "Print the K lines of FILE that are nearest to each input line instead, "
                                   "with similarity and number")
                      ->expected(2)
                      ->type_name("K FILE")
                      ->excludes(similarity)
                      ->excludes(format);
  verb->add_option("--vectors", flags->vectors,
                   "Vectors of the lines of --nearest that were saved before (-o and --format npy)")
      ->needs(nearest);
  verb->add_option("--input-pair", flags->pairs,
                   "Second texts, line by line, which an encoder such as BERT reads together with "
                   "the first ones")
      ->excludes(similarity)
      ->excludes(nearest);
  flags->settings.add(*verb, flags->options);
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
      "  multihead embed minilm -i test.en --mute 'encoder.5.self_attention.*' \\\n"
      "    --compare");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
