// multihead classify: the labels that a classifier gives to texts, or to their tokens.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/run_on_pairs.h"
#include "cli/side_by_side.h"
#include "cli/text_pairs.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/tasks/classify_text.h"

namespace mh::cli {
namespace {

struct ClassifyFlags : PairVerbFlags<ClassifyOptions> {
  int32_t top = 5;
};

using Ordered = nlohmann::ordered_json;

/// The best labels, at most so many.
std::vector<size_t> best_labels(const LabelRow& row, int32_t count) {
  const std::vector<int32_t> all = row.best_first();
  return {all.begin(), all.begin() + std::min<std::ptrdiff_t>(count, std::ssize(all))};
}

Ordered labels_json(const LabelRow& row, const Labels& labels, int32_t count) {
  Ordered list = Ordered::array();
  for (const size_t label : best_labels(row, count))
    list.push_back(
        {{"label", labels.names[label]}, {"score", row.scores[label]}, {"logit", row.logits[label]}});
  return list;
}

std::string classified_json(const TextPairs& texts, size_t i, const LabelledText& found, const Labels& labels,
                            int32_t top) {
  Ordered line;
  line["text"] = texts.firsts[i];
  if (!texts.seconds.empty()) line["pair"] = texts.seconds[i];
  if (labels.of == LabelsOf::kTexts) {
    line["labels"] = labels_json(found.rows[0], labels, top);
  } else {
    line["tokens"] = Ordered::array();
    for (size_t t = 0; t < found.tokens.size(); ++t) {
      const LabelledToken& token = found.tokens[t];
      line["tokens"].push_back({{"token", token.token},
                                {"characters", {token.characters.first, token.characters.second}},
                                {"labels", labels_json(found.rows[t], labels, top)}});
    }
  }
  return line.dump() + "\n";
}

/// "0.999505 negated  0.000495 plain"
std::string labels_line(const LabelRow& row, const Labels& labels, int32_t count) {
  std::string line;
  for (const size_t label : best_labels(row, count))
    line += fmt::format("{}{:.6f} {}", line.empty() ? "" : "  ", row.scores[label],
                        printable_line(labels.names[label]));
  return line;
}

/// A line for a text; of a classifier of tokens one for each token, and an empty one behind the text.
std::string classified_lines(const LabelledText& found, const Labels& labels, int32_t top) {
  if (labels.of == LabelsOf::kTexts) return labels_line(found.rows[0], labels, top) + "\n";
  std::string lines;
  for (size_t t = 0; t < found.tokens.size(); ++t) {
    lines +=
        fmt::format("{}  {}\n", labels_line(found.rows[t], labels, 1), printable_line(found.tokens[t].token));
  }
  return lines + "\n";
}

/// The labels of each text, or the best ones of its tokens, with all heads at the left and with changed ones at the right.
std::string labels_side_by_side(const TextPairs& texts, const Compared<std::vector<LabelledText>>& found,
                                const Labels& labels, const ClassifyFlags& flags) {
  std::string output = comparison_heading();
  int64_t rows = 0, changed = 0;
  for (size_t i = 0; i < texts.firsts.size(); ++i) {
    output += "\n" + text_heading(texts, i, flags.options.from.at(i));
    for (size_t t = 0; t < found.whole[i].rows.size(); ++t) {
      const LabelRow &whole = found.whole[i].rows[t], &other = found.changed[i].rows[t];
      ++rows;
      if (whole.best_first()[0] != other.best_first()[0]) ++changed;
      const std::string token =
          labels.of == LabelsOf::kTokens ? "  " + printable_line(found.whole[i].tokens[t].token) : "";
      const int32_t shown = labels.of == LabelsOf::kTokens ? 1 : flags.top;
      const std::vector<size_t> left = best_labels(whole, shown), right = best_labels(other, shown);
      for (size_t k = 0; k < left.size(); ++k) {
        const auto cell = [&](const LabelRow& row, size_t label) {
          return fmt::format("{:.6f} {}{}", row.scores[label], printable_line(labels.names[label]), token);
        };
        output += side_by_side(cell(whole, left[k]), cell(other, right[k]));
      }
    }
  }
  if (rows == 0) return "nothing to classify\n";
  const char* const what = labels.of == LabelsOf::kTokens ? "token" : "text";
  return output + fmt::format("\nthe best label of {} of {} changed\n", changed, counted(rows, what));
}

void run_classify(ClassifyFlags& flags) {
  using Found = std::vector<LabelledText>;
  run_on_pairs(
      flags, classify_text,
      [&](const ModelFolder& folder, const TextPairs& texts, const Found& found) {
        std::string output;
        for (size_t i = 0; i < found.size(); ++i) {
          output += flags.json ? classified_json(texts, i, found[i], *folder.labels, flags.top)
                               : classified_lines(found[i], *folder.labels, flags.top);
        }
        return output;
      },
      [&](const ModelFolder& folder, const TextPairs& texts, const Compared<Found>& both) {
        return labels_side_by_side(texts, both, *folder.labels, flags);
      });
}

}  // namespace

void add_classify(Verb& app) {
  auto flags = std::make_shared<ClassifyFlags>();
  Verb* verb = app.add_subcommand("classify", "Give texts, or their tokens, the labels of a classifier");
  add_model(*verb, flags->model)->required();
  add_text_pair_flags(*verb, flags->texts, "A text to classify");
  add_number(*verb, "--top", flags->top, {.low = 1, .high = 1 << 16},
             "How many labels to show, the best first; of a token the plain lines show the best one");
  flags->settings.add(*verb, flags->options);
  add_head_change_flags(*verb, flags->changes);
  auto* json = verb->add_flag("--json", flags->json,
                              "Write a JSON object a line: the text and its labels, or its tokens' labels");
  verb->add_flag("--compare", flags->changes.compare,
                 "With changed heads: classify with all heads too, and show the labels side by side")
      ->excludes(json);
  verb->footer(
      "Example:\n"
      "  multihead classify distilbert-sst2 --text 'A lovely film.'\n"
      "  multihead classify cross-encoder --text 'Where is Bern?' \\\n"
      "    --text-pair 'Bern is a city in Switzerland.'\n"
      "  multihead classify bert-ner -i lines.txt --json -o labels.jsonl\n"
      "  multihead classify distilbert-sst2 -i lines.txt \\\n"
      "    --mute 'encoder.3.self_attention.*' --compare");
  verb->callback([flags] { run_classify(*flags); });
}

}  // namespace mh::cli
