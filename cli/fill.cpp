// multihead fill: which words may stand in the place of a mask.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/run_on_pairs.h"
#include "cli/side_by_side.h"
#include "cli/text_pairs.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/tasks/fill_words.h"

namespace mh::cli {
namespace {

using FillFlags = PairVerbFlags<FillOptions>;

/// The words for the masks of each text.
using FilledTexts = std::vector<std::vector<std::vector<FilledWord>>>;

std::string as_json(const TextPairs& texts, size_t i, const std::vector<std::vector<FilledWord>>& masks) {
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
std::string comparison_of(const TextPairs& texts, const Compared<FilledTexts>& found, const LinesFrom& from) {
  std::string output = comparison_heading();
  int64_t masks = 0, changed = 0;
  for (size_t i = 0; i < texts.firsts.size(); ++i) {
    for (size_t m = 0; m < found.whole[i].size(); ++m) {
      const std::vector<FilledWord>&whole = found.whole[i][m], &other = found.changed[i][m];
      ++masks;
      if (whole[0].token != other[0].token) ++changed;
      output += "\n" + text_heading(texts, i, fmt::format("{} mask {}", from.at(i), m + 1));
      for (size_t k = 0; k < whole.size(); ++k)
        output += side_by_side(with_probability(whole[k]), with_probability(other[k]));
    }
  }
  if (masks == 0) return "nothing to fill in\n";
  return output + fmt::format("\nthe best word of {} of {} changed\n", changed, counted(masks, "mask"));
}

void run(FillFlags& flags) {
  run_on_pairs(
      flags, fill_words,
      [&](const ModelFolder&, const TextPairs& texts, const FilledTexts& found) {
        std::string output;
        for (size_t i = 0; i < found.size(); ++i)
          output += flags.json ? as_json(texts, i, found[i]) : as_lines(found[i]);
        return output;
      },
      [&](const ModelFolder&, const TextPairs& texts, const Compared<FilledTexts>& both) {
        return comparison_of(texts, both, flags.options.from);
      });
}

}  // namespace

void add_fill(Verb& app) {
  auto flags = std::make_shared<FillFlags>();
  Verb* verb = app.add_subcommand("fill", "Fill masked words in with an encoder such as BERT");
  add_model(*verb, flags->model)->required();
  add_text_pair_flags(*verb, flags->texts,
                      "A text with [MASK] (or the model's own mask) for each missing word");
  flags->settings.add(*verb, flags->options);
  add_head_change_flags(*verb, flags->changes);
  auto* json = verb->add_flag("--json", flags->json,
                              "Write a JSON object a line: the text, and the words of each mask");
  verb->add_flag(
          "--compare", flags->changes.compare,
          "With changed heads: fill in with all heads too, and show the words of each mask side by side")
      ->excludes(json);
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
