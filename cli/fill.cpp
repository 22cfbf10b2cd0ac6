// multihead fill: which words may stand in the place of a mask.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/comparison.h"
#include "cli/error_line.h"
#include "cli/head_changes.h"
#include "cli/load_model.h"
#include "cli/setting_flags.h"
#include "cli/side_by_side.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/tasks/fill_words.h"

namespace mh::cli {
namespace {

struct FillFlags {
  ModelFlags model;
  TextFlags text;
  std::vector<std::string> texts, second_texts;
  HeadChangeFlags changes;
  std::string pairs;  // the file of second texts
  FillOptions options;
  SettingFlags settings;
  bool json = false;
};

/// The words for the masks of each text.
using FilledTexts = std::vector<std::vector<std::vector<FilledWord>>>;

/// The texts of the flags, and their second texts, if there are any.
struct FillTexts {
  std::vector<std::string> firsts, seconds;
};

std::string as_json(const FillTexts& texts, size_t i, const std::vector<std::vector<FilledWord>>& masks) {
  nlohmann::ordered_json line;
  line["text"] = texts.firsts[i];
  if (!texts.seconds.empty()) line["pair"] = texts.seconds[i];
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

std::string with_probability(const FilledWord& word) {
  return fmt::format("{:.6f} {}", word.probability, printable_line(word.word));
}

// A line for each mask: "0.912345 capital  0.034567 heart".
std::string as_lines(const std::vector<std::vector<FilledWord>>& masks) {
  std::string lines;
  for (const std::vector<FilledWord>& mask : masks) {
    for (size_t i = 0; i < mask.size(); ++i) lines += (i > 0 ? "  " : "") + with_probability(mask[i]);
    lines += '\n';
  }
  return lines;
}

// The words of each mask below each other, with all heads at the left and with changed ones at the right.
std::string comparison_of(const FillTexts& texts, const Compared<FilledTexts>& found, const LinesFrom& from) {
  std::string output = comparison_heading();
  int64_t masks = 0, changed = 0;
  for (size_t i = 0; i < texts.firsts.size(); ++i) {
    const std::string text = texts.firsts[i] + (texts.seconds.empty() ? "" : " | " + texts.seconds[i]);
    for (size_t m = 0; m < found.whole[i].size(); ++m) {
      const std::vector<FilledWord>&whole = found.whole[i][m], &other = found.changed[i][m];
      ++masks;
      if (whole[0].token != other[0].token) ++changed;
      output += "\n" + wrapped(cell_text(fmt::format("{} mask {}: {}", from.at(i), m + 1, text),
                                         std::numeric_limits<int>::max()));
      for (size_t k = 0; k < whole.size(); ++k)
        output += side_by_side(with_probability(whole[k]), with_probability(other[k]));
    }
  }
  if (masks == 0) return "nothing to fill in\n";
  return output + fmt::format("\nthe best word of {} of {} changed\n", changed, counted(masks, "mask"));
}

FillTexts texts_of(const FillFlags& flags) {
  for (const std::string& text : flags.texts) check_utf8(text, "--text");
  for (const std::string& text : flags.second_texts) check_utf8(text, "--text-pair");
  if (flags.texts.empty()) {
    FillTexts texts{.firsts = read_text(flags.text.input), .seconds = {}};
    if (flags.pairs.empty()) return texts;
    texts.seconds = read_text(flags.pairs);
    check_line_for_each(flags.pairs, texts.seconds.size(),
                        {.name = name_of(flags.text.input), .count = texts.firsts.size()});
    return texts;
  }
  if (!flags.second_texts.empty() && flags.second_texts.size() != flags.texts.size()) {
    throw UsageError(fmt::format("--text-pair: expected one for each --text, got {} for {}",
                                 flags.second_texts.size(), flags.texts.size()));
  }
  return {.firsts = flags.texts, .seconds = flags.second_texts};
}

void run(FillFlags& flags) {
  flags.settings.take(flags.options);
  SiteValues changed = changed_heads(flags.changes);
  if (!changed.empty()) flags.options.sites = &changed;
  const ModelFolder folder = load_model(flags.model);
  const FillTexts texts = texts_of(flags);
  flags.options.pairs = texts.seconds;
  if (flags.texts.empty()) flags.options.from = {.name = name_of(flags.text.input)};
  flags.options.remark = [](const std::string& line) { remark(line); };
  std::string output;
  if (flags.changes.compare) {
    FillOptions whole = flags.options, other = flags.options;
    whole.sites = nullptr;
    other.remark = nullptr;  // the same texts are cut
    const Compared<FilledTexts> found{fill_words(folder, texts.firsts, whole),
                                      fill_words(folder, texts.firsts, other)};
    return write_text(flags.text.output, comparison_of(texts, found, flags.options.from));
  }
  const FilledTexts found = fill_words(folder, texts.firsts, flags.options);
  for (size_t i = 0; i < found.size(); ++i)
    output += flags.json ? as_json(texts, i, found[i]) : as_lines(found[i]);
  write_text(flags.text.output, output);
}

}  // namespace

void add_fill(Verb& app) {
  auto flags = std::make_shared<FillFlags>();
  Verb* verb = app.add_subcommand("fill", "Fill masked words in with an encoder such as BERT");
  add_model(*verb, flags->model)->required();
  auto* text =
      verb->add_option(
              "--text", flags->texts,
              "A text with [MASK] (or the model's own mask) for each missing word; may be given again")
          ->again();
  verb->add_option("--text-pair", flags->second_texts,
                   "A second text for each --text, which the model reads together with it")
      ->again()
      ->needs(text);
  add_text_flags(*verb, flags->text);
  verb->add_option("--input-pair", flags->pairs, "The second texts of --input, line by line")->excludes(text);
  verb->get_option("--input")
      ->description("Read the texts from this file (gzip or not), one a line, instead of standard input")
      ->excludes(text);
  flags->settings.add(*verb, flags->options);
  add_head_change_flags(*verb, flags->changes);
  auto* json = verb->add_flag("--json", flags->json,
                              "Write a JSON object a line: the text, and the words of each mask");
  verb->add_flag(
          "--compare", flags->changes.compare,
          "With changed heads: fill in with all heads too, and show the words of each mask side by side")
      ->excludes(json);
  name_values(*verb, "TEXT", {"--text", "--text-pair"});
  name_values(*verb, "FILE", {"--input-pair"});
  rare_flags(*verb, {"--input-pair"});
  verb->footer(
      "Example:\n"
      "  multihead fill bert --text 'Paris is the [MASK] of France.'\n"
      "  multihead fill roberta --text 'Paris is the <mask> of France.' --words 3 \\\n"
      "    --json\n"
      "  multihead fill bert --text 'Is the sky blue?' --text-pair 'It is [MASK].'\n"
      "  multihead fill bert -i lines.txt --mute 'encoder.3.self_attention.*' --compare");
  verb->callback([flags] { run(*flags); });
}

}  // namespace mh::cli
