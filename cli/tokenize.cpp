// multihead tokenize: text to pieces or ids and back, and the learning of tokenizers.
#include <charconv>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/setting_flags.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/thread_pool.h"
#include "multihead/folders/model_folder.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/tokenizer.h"
#include "multihead/text/train_tokenizer.h"

namespace mh::cli {
namespace {

enum class Output { pieces, readable, ids, offsets };

struct TokenizeFlags {
  TextFlags text;
  std::string tokenizer;
  std::string model;
  bool ids = false;
  bool offsets = false;
  bool readable = false;
  bool special_tokens = false;
  bool detokenize = false;
  std::vector<std::string> train;
  std::string output_tokenizer = "tokenizer.json";
  BpeOptions learned;  // of --word-level, too
  SettingFlags settings;
  bool word_level = false;
};

Tokenizer open_tokenizer(const TokenizeFlags& flags) {
  if (flags.tokenizer.empty() == flags.model.empty()) {
    throw UsageError("tokenize: expected one of --tokenizer FILE, --model MODEL and --train FILE...");
  }
  if (!flags.model.empty()) return load_tokenizer(flags.model, remark);
  return Tokenizer::from_json(read_regular_file(flags.tokenizer), flags.tokenizer);
}

void learn(const TokenizeFlags& flags) {
  std::vector<std::string> lines;
  for (const std::string& path : flags.train) {
    std::vector<std::string> more = read_text(path);
    if (more.empty()) throw FormatError(path + " is empty; give text to learn from, a sentence a line");
    lines.insert(lines.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  BpeOptions options = flags.learned;
  flags.settings.take(options);
  options.name = fmt::format("{}", fmt::join(flags.train, ", "));
  const Tokenizer tokenizer = flags.word_level
                                  ? train_word_level(lines, {.vocabulary_size = options.vocabulary_size,
                                                             .lowercase = options.lowercase,
                                                             .normalization = options.normalization,
                                                             .name = options.name})
                                  : train_bpe(lines, options);
  write_file_atomically(flags.output_tokenizer, tokenizer.to_json());
  if (!quiet()) {
    to_stderr(fmt::format("{}: {} learned from {}\n", printable_line(flags.output_tokenizer),
                          counted(tokenizer.size(), "token"), counted(std::ssize(lines), "line")));
  }
}

std::string line_of(const Tokenizer& tokenizer, const std::string& text, Output output, bool special_tokens) {
  std::string line;
  const auto add = [&](std::string_view field) { line.append(line.empty() ? "" : " ").append(field); };
  if (output == Output::ids) {
    for (const int32_t id : tokenizer.encode_ids(text, special_tokens)) add(fmt::format("{}", id));
    return line;
  }
  const Encoding encoding = tokenizer.encode(text, special_tokens);
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const auto [begin, end] = encoding.offsets[i];
    const bool known = encoding.ids[i] != tokenizer.unknown_id();
    add(output == Output::offsets             ? fmt::format("{}:{}", begin, end)
        : output == Output::readable && known ? tokenizer.shown(encoding.ids[i])
                                              : encoding.tokens[i]);
  }
  return line;
}

std::string text_of(const Tokenizer& tokenizer, const std::string& line, bool ids, const std::string& what,
                    size_t number) {
  std::vector<int32_t> tokens;
  const std::string_view fields = line;
  for (size_t at = 0; at < fields.size();) {
    const size_t end = std::min(fields.find(' ', at), fields.size());
    const std::string_view field = fields.substr(at, end - at);
    at = end + 1;
    if (field.empty()) continue;
    int32_t id = -1;
    if (ids) {
      const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), id);
      if (error != std::errc() || stop != field.data() + field.size() || id < 0 || id >= tokenizer.size()) {
        throw FormatError(fmt::format("{} line {}: expected ids from 0 to {}, got {}", what, number,
                                      tokenizer.size() - 1, in_quotes(field)));
      }
    } else if (const auto known = tokenizer.id_of(field)) {
      id = *known;
    } else {
      throw FormatError(
          fmt::format("{} line {}: {} is not a piece of this tokenizer; is it the one that made the pieces, "
                      "or are they --ids?",
                      what, number, in_quotes(field)));
    }
    tokens.push_back(id);
  }
  return tokenizer.decode(tokens);
}

void tokenize(const TokenizeFlags& flags) {
  if (!flags.train.empty()) return learn(flags);
  const Tokenizer tokenizer = open_tokenizer(flags);
  const std::vector<std::string> lines = read_text(flags.text.input);
  const std::string name = name_of(flags.text.input);
  const Output output = flags.ids        ? Output::ids
                        : flags.offsets  ? Output::offsets
                        : flags.readable ? Output::readable
                                         : Output::pieces;
  std::vector<std::string> results(lines.size());
  constexpr size_t kLinesATask = 256;
  const auto tasks = static_cast<int64_t>((lines.size() + kLinesATask - 1) / kLinesATask);
  parallel_for(tasks, [&](int64_t task) {
    const size_t begin = static_cast<size_t>(task) * kLinesATask;
    for (size_t i = begin; i < std::min(begin + kLinesATask, lines.size()); ++i) {
      results[i] = flags.detokenize ? text_of(tokenizer, lines[i], flags.ids, name, i + 1)
                                    : line_of(tokenizer, lines[i], output, flags.special_tokens);
    }
  });
  std::string text;
  for (const std::string& result : results) text.append(result).append("\n");
  write_text(flags.text.output, text);
}

}  // namespace

void add_tokenize(Verb& app) {
  auto flags = std::make_shared<TokenizeFlags>();
  Verb* verb = app.add_subcommand("tokenize", "Turn text into tokens and back, or learn a tokenizer");
  add_text_flags(*verb, flags->text);
  auto* ids =
      verb->add_flag("--ids", flags->ids, "Write token ids instead of tokens; with --detokenize, read ids");
  auto* detokenize = verb->add_flag("--detokenize", flags->detokenize, "Read tokens or ids, write text");
  auto* offsets =
      verb->add_flag("--offsets", flags->offsets, "Write begin:end of each token, in characters of the line")
          ->excludes(ids)
          ->excludes(detokenize);
  // Flags that tell what to do with a tokenizer, and below those that tell how one is learned.
  const std::vector<Flag*> uses = {
      verb->get_option("--input"),
      verb->get_option("--output"),
      verb->add_option("--tokenizer", flags->tokenizer, "The tokenizer.json to use"),
      add_model(*verb, flags->model, "Use the tokenizer of this model folder or .gguf file"),
      ids,
      offsets,
      verb->add_flag("--readable", flags->readable,
                     "Write tokens of byte-level tokenizers as the text that they stand for, and what is no "
                     "whole character as <0xE6>")
          ->excludes(ids)
          ->excludes(offsets)
          ->excludes(detokenize),
      verb->add_flag("--special-tokens", flags->special_tokens,
                     "Add the tokens that the model expects, such as </s>")
          ->excludes(detokenize),
      detokenize};
  auto* train =
      verb->add_option("--train", flags->train, "Learn one tokenizer from all these files (gzip or not)");
  for (Flag* option : uses) option->excludes(train);
  verb->add_option("--output-tokenizer", flags->output_tokenizer, "File that --train writes")->needs(train);
  verb->add_flag("--word-level", flags->word_level, "Learn whole words, not pieces of byte-pair encoding")
      ->needs(train);
  flags->settings.add(*verb, flags->learned, {"alphabet_limit", "least_pair_count"});
  for (const std::string& flag : flags->settings.names()) verb->get_option(flag)->needs(train);
  name_values(*verb, "FILE", {"--tokenizer", "--train", "--output-tokenizer"});
  group_flags(*verb, "Use a tokenizer",
              {"--tokenizer", "--input", "--output", "--ids", "--offsets", "--readable", "--special-tokens",
               "--detokenize"});
  group_flags(*verb, "Learn a tokenizer", {"--train", "--output-tokenizer", "--word-level"});
  verb->footer(
      "Example:\n"
      "  multihead tokenize --train train.en train.de --vocabulary-size 8000 \\\n"
      "    --output-tokenizer tokenizer.json\n"
      "  echo 'Two dogs are playing.' | multihead tokenize --tokenizer tokenizer.json");
  verb->callback([flags] { tokenize(*flags); });
}

}  // namespace mh::cli
