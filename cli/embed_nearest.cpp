#include "cli/embed_nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <initializer_list>
#include <utility>

#include "cli/common.h"
#include "multihead/base/error.h"
#include "multihead/folders/sentence_tokens.h"
#include "multihead/tasks/saved_vectors.h"

namespace mh::cli {
namespace {

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

/// Lines of --nearest's file have a prompt of their own.
EmbedTextOptions options_of_documents(const NearestFlags& flags, EmbedTextOptions options) {
  options.prompt.reset();
  options.prompt_name.reset();
  if (!flags.document_prompt.empty()) options.prompt_name = flags.document_prompt;
  return options;
}

/// The first of these names with which the folder has a prompt that is not every text's; empty: there is none.
std::string other_prompt(const SentenceModel& model, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    for (const SentencePrompt& prompt : model.prompts) {
      if (prompt.name == name && !prompt.text.empty() && prompt.text != model.prompt) return name;
    }
  }
  return "";
}

/// The prompts with which sentence-transformers encodes queries and documents, where nothing was said of them.
void remark_prompts(const NearestFlags& flags, const SentenceModel& model, const EmbedTextOptions& options) {
  std::vector<std::string> left_out;
  const bool asks = options.prompt || options.prompt_name, embeds_file = flags.vectors.empty();
  if (const std::string name = other_prompt(model, {"query"}); !asks && !name.empty())
    left_out.push_back(fmt::format("--prompt-name {} puts one before input lines", name));
  if (const std::string name = other_prompt(model, {"document", "passage", "corpus"});
      embeds_file && flags.document_prompt.empty() && !name.empty())
    left_out.push_back(fmt::format("--document-prompt-name {} puts one before lines of FILE", name));
  if (!left_out.empty())
    remark(fmt::format("the model has prompts for --nearest that were not asked for: {}",
                       fmt::join(left_out, ", ")));
}

}  // namespace

void check_nearest(const NearestFlags& flags) {
  nearest_of(flags.count_and_file);
}

void check_prompts(const NearestFlags& flags, const SentenceModel& model, const EmbedTextOptions& options) {
  for (const EmbedTextOptions& of : {options, options_of_documents(flags, options)})
    chosen_prompt(model, of.prompt_name, of.prompt);
  if (flags.given()) remark_prompts(flags, model, options);
}

void write_nearest(const NearestFlags& flags, EmbedInput input, const std::string& output,
                   const SentenceModel& model, const EmbedTextOptions& options) {
  const Nearest wanted = nearest_of(flags.count_and_file);
  const std::vector<std::string> candidates = read_text(wanted.file);
  if (candidates.empty())
    throw FormatError(wanted.file + " is empty; give sentences to look among, one a line");
  Embedder embedder(model, options);
  const Tensor rows = flags.vectors.empty()
                          ? Embedder(model, options_of_documents(flags, options))
                                .vectors({.lines = candidates, .from = {.name = wanted.file}})
                          : read_vectors(flags.vectors, {.lines_name = wanted.file,
                                                         .lines = std::ssize(candidates),
                                                         .dimension = model.dimension});
  EmbedOutput to(output);
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
    to.write(text);
  }
  to.finish();
}

}  // namespace mh::cli
