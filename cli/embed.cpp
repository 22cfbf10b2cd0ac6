// multihead embed: a line in, its vector out; how alike texts are.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/help_format.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/io/npy.h"
#include "multihead/models/sentence_model.h"
#include "multihead/recipes/embed_text.h"

namespace mh::cli {
namespace {

enum class VectorFormat { kJsonLines, kNpy, kRaw };

struct EmbedFlags {
  std::string model;
  TextFlags text;
  VectorFormat format = VectorFormat::kJsonLines;
  std::vector<std::string> similarity;  // two texts
  std::vector<std::string> nearest;     // how many, and the file
  std::vector<std::string> mute;
  EmbedTextOptions options;
};

/// Lines a block: their vectors are what is kept in memory when the output is not one file.
constexpr size_t kLinesAtOnce = 20'000;

std::string as_bytes(std::span<const float> numbers) {
  std::string bytes(numbers.size_bytes(), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

/// {"text": "...", "vector": [...]}; the numbers are the shortest that read back as the same float.
std::string json_lines(const std::vector<std::string>& lines, ConstMatrixView rows) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::span<const float> row(rows.row(static_cast<int64_t>(i)), static_cast<size_t>(rows.cols));
    fmt::format_to(std::back_inserter(text), "{{\"text\":{},\"vector\":[{}]}}\n",
                   nlohmann::json(lines[i]).dump(), fmt::join(row, ","));
  }
  return text;
}

/// The vectors of lines as they come, with one counter for all of them.
class Embedder {
 public:
  Embedder(const EmbedFlags& flags, const SentenceModel& model, const Interventions& muted)
      : options_(flags.options), model_(model) {
    options_.interventions = muted.empty() ? nullptr : &muted;
    options_.remark = [](const std::string& line) { remark(line); };
  }

  /// `from`: what they are called; `last`: no lines come after these.
  Tensor vectors(const std::vector<std::string>& lines, const LinesFrom& from, bool last) {
    options_.from = from;
    if (last) progress_.expect(done_ + std::ssize(lines));
    options_.progress = [&](int64_t done) { progress_.show(done_ + done); };
    Tensor rows = embed_text(model_, lines, options_);
    done_ += std::ssize(lines);
    if (last) done_ = 0;
    progress_.clear();
    return rows;
  }

 private:
  EmbedTextOptions options_;
  const SentenceModel& model_;
  Progress progress_{"embedded", "sentences"};
  int64_t done_ = 0;
};

/// Calls take(lines, rows) for the lines of the input, block by block.
template <class Take>
void for_each_block(const EmbedFlags& flags, Embedder& embedder, Take&& take) {
  const auto reader = text_reader(flags.text.input, "Ctrl-D on an empty line ends the text");
  LinesFrom from{.name = name_of(flags.text.input)};
  while (!reader->ended()) {
    const std::vector<std::string> lines = reader->next({.max_lines = kLinesAtOnce});
    if (lines.empty()) break;
    take(lines, embedder.vectors(lines, from, reader->ended()));
    from.first += lines.size();
  }
}

/// A file appears as a whole, at the end; on standard output each block when it is there, except for npy, whose
/// header says how many rows follow.
void write_vectors(const EmbedFlags& flags, const SentenceModel& model, Embedder& embedder) {
  const bool wait = !flags.text.output.empty();
  std::string whole;
  std::vector<float> numbers;
  for_each_block(flags, embedder, [&](const std::vector<std::string>& lines, const Tensor& rows) {
    const std::span<const float> all(rows.data(), static_cast<size_t>(rows.size()));
    if (flags.format == VectorFormat::kNpy) {
      numbers.insert(numbers.end(), all.begin(), all.end());
      return;
    }
    std::string output = flags.format == VectorFormat::kRaw ? as_bytes(all) : json_lines(lines, rows.view());
    if (wait) {
      whole += output;
    } else {
      write_text("", output);
    }
  });
  if (flags.format == VectorFormat::kNpy) {
    const std::array shape{std::ssize(numbers) / model.dimension, model.dimension};
    whole = write_npy(shape, numbers);
  }
  if (wait || flags.format == VectorFormat::kNpy) write_text(flags.text.output, whole);
}

void write_similarity(const EmbedFlags& flags, Embedder& embedder) {
  const Tensor rows = embedder.vectors(flags.similarity, {.name = "--similarity", .one = "text"}, true);
  write_text(flags.text.output, fmt::format("{:.6f}\n", cosine(rows.view(), 0, 1)));
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

void write_nearest(const EmbedFlags& flags, Embedder& embedder) {
  const Nearest wanted = nearest_of(flags.nearest);
  const std::vector<std::string> candidates = read_text(wanted.file);
  if (candidates.empty())
    throw FormatError(wanted.file + " is empty; give sentences to look among, one a line");
  const Tensor rows = embedder.vectors(candidates, {.name = wanted.file}, true);
  std::string whole;
  for_each_block(flags, embedder, [&](const std::vector<std::string>& lines, const Tensor& queries) {
    std::string output;
    const auto nearest = nearest_rows(queries.view(), rows.view(), wanted.count);
    for (size_t i = 0; i < lines.size(); ++i) {
      output += lines[i] + "\n";
      for (const Neighbour& neighbour : nearest[i]) {
        output += fmt::format("{:9.4f}  {:>6}  {}\n", neighbour.cosine, neighbour.row + 1,
                              candidates[static_cast<size_t>(neighbour.row)]);
      }
    }
    if (flags.text.output.empty()) return write_text("", output);
    whole += output;
  });
  if (!flags.text.output.empty()) write_text(flags.text.output, whole);
}

void run(const EmbedFlags& flags) {
  const bool compare = !flags.similarity.empty() || !flags.nearest.empty();
  if (!compare && flags.format != VectorFormat::kJsonLines && flags.text.output.empty() &&
      isatty(STDOUT_FILENO) == 1)
    throw UsageError("--format: npy and raw are bytes that no terminal shows; give -o FILE");
  for (const std::string& text : flags.similarity) check_utf8(text, "--similarity");
  if (!flags.nearest.empty()) nearest_of(flags.nearest);
  const Interventions muted = muted_heads(flags.mute);

  const SentenceModel model = load_sentence_model(flags.model);
  for (const std::string& line : model.remarks) remark(line);
  model.folder.model->check(muted);
  Embedder embedder(flags, model, muted);
  if (!flags.similarity.empty()) return write_similarity(flags, embedder);
  if (!flags.nearest.empty()) return write_nearest(flags, embedder);
  write_vectors(flags, model, embedder);
}

}  // namespace

void add_embed(CLI::App& app) {
  auto flags = std::make_shared<EmbedFlags>();
  CLI::App* verb = app.add_subcommand("embed", "Turn each line into a vector, or say which lines are alike");
  add_model(*verb, flags->model)->required();
  add_text_flags(*verb, flags->text);
  auto* format = add_choice(
      *verb, "--format", flags->format,
      {{"jsonl", VectorFormat::kJsonLines}, {"npy", VectorFormat::kNpy}, {"raw", VectorFormat::kRaw}},
      "jsonl: a line with text and vector; npy: one array; raw: its float32 numbers");
  auto* similarity =
      verb->add_option("--similarity", flags->similarity, "Print the cosine of these two texts instead")
          ->expected(2)
          ->type_name("A B")
          ->excludes("--input")
          ->excludes(format);
  verb->add_option(
          "--nearest", flags->nearest,
          "Print the K lines of FILE that are nearest to each input line instead, with cosine and number")
      ->expected(2)
      ->type_name("K FILE")
      ->excludes(similarity)
      ->excludes(format);
  verb->add_flag("--strict", flags->options.strict,
                 "Refuse a line that is longer than the model reads; it is cut otherwise");
  add_mute_flag(*verb, flags->mute);
  add_number(*verb, "--max-batch-tokens", flags->options.max_batch_tokens, {.low = 1},
             "Most tokens in a batch");
  rare_flags(*verb, {"--max-batch-tokens"});
  verb->footer(
      "Example:\n"
      "  multihead embed minilm -i test.en -o test.npy --format npy\n"
      "  multihead embed minilm --similarity 'two dogs run .' 'a pair of dogs is running .'\n"
      "  echo 'two dogs run .' | multihead embed minilm --nearest 3 test.en");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
