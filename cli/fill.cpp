// multihead fill: which words may stand in the place of a mask.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/help_format.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "multihead/models/model_folder.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/recipes/fill_words.h"

namespace mh::cli {
namespace {

struct FillFlags {
  std::string model;
  TextFlags text;
  std::vector<std::string> texts, mute;
  FillOptions options;
  bool json = false;
};

std::string as_json(const std::string& text, const std::vector<std::vector<FilledWord>>& masks) {
  nlohmann::ordered_json line;
  line["text"] = text;
  line["masks"] = nlohmann::ordered_json::array();
  for (const std::vector<FilledWord>& mask : masks) {
    nlohmann::ordered_json words = nlohmann::ordered_json::array();
    for (const FilledWord& word : mask) {
      nlohmann::ordered_json one;
      one["id"] = word.token;
      one["word"] = word.word;
      one["probability"] = word.probability;
      words.push_back(std::move(one));
    }
    line["masks"].push_back(std::move(words));
  }
  return line.dump() + "\n";
}

// A line for each mask: "0.912345 capital  0.034567 heart".
std::string as_lines(const std::vector<std::vector<FilledWord>>& masks) {
  std::string lines;
  for (const std::vector<FilledWord>& mask : masks) {
    for (size_t i = 0; i < mask.size(); ++i)
      lines +=
          fmt::format("{}{:.6f} {}", i > 0 ? "  " : "", mask[i].probability, printable_line(mask[i].word));
    lines += '\n';
  }
  return lines;
}

void run(FillFlags& flags) {
  const Interventions muted = muted_heads(flags.mute);
  if (!muted.empty()) flags.options.interventions = &muted;
  const ModelFolder folder = load_model(flags.model);
  for (const std::string& text : flags.texts) check_utf8(text, "--text");
  const std::vector<std::string> texts = flags.texts.empty() ? read_text(flags.text.input) : flags.texts;
  if (flags.texts.empty()) flags.options.from = {.name = name_of(flags.text.input)};
  flags.options.remark = [](const std::string& line) { remark(line); };
  const auto found = fill_words(folder, texts, flags.options);
  std::string output;
  for (size_t i = 0; i < texts.size(); ++i)
    output += flags.json ? as_json(texts[i], found[i]) : as_lines(found[i]);
  write_text(flags.text.output, output);
}

}  // namespace

void add_fill(CLI::App& app) {
  auto flags = std::make_shared<FillFlags>();
  CLI::App* verb = app.add_subcommand("fill", "Fill masked words in with an encoder such as BERT");
  add_model(*verb, flags->model)->required();
  auto* text =
      verb->add_option(
              "--text", flags->texts,
              "A text with [MASK] (or the model's own mask) for each missing word; may be given again")
          ->take_all()
          ->allow_extra_args(false);
  add_text_flags(*verb, flags->text);
  verb->get_option("--input")
      ->description("Read the texts from this file (gzip or not), one a line, instead of standard input")
      ->excludes(text);
  add_number(*verb, "--words", flags->options.words, {.low = 1, .high = kMaxCandidates},
             "How many words to show for each mask");
  verb->add_flag("--strict", flags->options.strict,
                 "Refuse a text that is longer than the model reads; it is cut otherwise");
  add_mute_flag(*verb, flags->mute);
  verb->add_flag("--json", flags->json, "Write a JSON object a line: the text, and the words of each mask");
  add_number(*verb, "--max-batch-tokens", flags->options.max_batch_tokens, {.low = 1},
             "Most tokens in a batch");
  name_values(*verb, "TEXT", {"--text"});
  rare_flags(*verb, {"--max-batch-tokens"});
  verb->footer(
      "Example:\n"
      "  multihead fill bert --text 'Paris is the [MASK] of France.'\n"
      "  multihead fill roberta --text 'Paris is the <mask> of France.' --words 3 --json");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
