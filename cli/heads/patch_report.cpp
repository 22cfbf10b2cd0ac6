#include "cli/heads/patch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/heads/figure_table.h"
#include "multihead/base/terminal_text.h"
#include "multihead/nn/attention_place.h"

namespace mh::cli {
namespace {

/// Per cent.
std::string restored_cell(double restored) {
  const double percent = 100 * restored;
  if (std::abs(percent) >= 99999) return percent > 0 ? ">9999" : "<-999";
  return fmt::format("{:.0f}", std::abs(percent) < 0.5 ? 0.0 : percent);
}

std::string position_label(const PatchReport& patching, const std::string& stack, int32_t position) {
  const auto at = static_cast<size_t>(position);
  const std::string &clean = patching.clean_text(stack).labels[at],
                    &corrupt = patching.corrupt_text(stack).labels[at];
  const std::string shown = clean == corrupt ? clean : corrupt + " \u2190 " + clean;
  return fmt::format("{:>3} {}", position, cell_text(shown, 24));
}

/// "decoder self-attention": what a table is of.
std::string table_of(const PatchPlace& place) {
  if (!place.kind) return place.stack;
  return place.stack + (place.kind == AttentionKind::kCross ? " cross-attention" : " self-attention");
}

/// Layers down, heads across.
FigureTable layers_by_heads(const std::vector<const PatchedValue*>& values) {
  FigureTable table{.corner = "layer"};
  size_t heads = 0;
  for (const PatchedValue* value : values)
    heads = std::max(heads, static_cast<size_t>(value->place.head) + 1);
  for (size_t head = 0; head < heads; ++head) table.columns.push_back(std::to_string(head));
  for (const PatchedValue* value : values) {
    const std::string layer = fmt::format("{:>5}", value->place.layer);
    if (table.rows.empty() || table.rows.back() != layer) {
      table.rows.push_back(layer);
      table.cells.emplace_back(heads);
    }
    table.cells.back()[static_cast<size_t>(value->place.head)] = value->restored;
  }
  return table;
}

/// Positions down, layers across: of heads the strongest of the layer.
FigureTable positions_by_layers(const PatchReport& patching, const std::vector<const PatchedValue*>& values) {
  const std::string& stack = values[0]->place.stack;
  FigureTable table{.corner = "position"};
  int32_t positions = 0;
  int layers = 0;
  for (const PatchedValue* value : values) {
    positions = std::max(positions, *value->place.position + 1);
    layers = std::max(layers, value->place.layer + 1);
  }
  for (int layer = 0; layer < layers; ++layer)
    table.columns.push_back(
        values[0]->place.attention.empty() && layer + 1 == layers ? "out" : std::to_string(layer));
  for (int32_t i = 0; i < positions; ++i) {
    table.rows.push_back(position_label(patching, stack, i));
    table.cells.emplace_back(static_cast<size_t>(layers));
  }
  for (const PatchedValue* value : values) {
    std::optional<double>& cell =
        table.cells[static_cast<size_t>(*value->place.position)][static_cast<size_t>(value->place.layer)];
    if (!cell || std::abs(value->restored) > std::abs(*cell)) cell = value->restored;
  }
  return table;
}

/// The stream at all positions: a line for each layer.
FigureTable layers_of_stream(const std::vector<const PatchedValue*>& values) {
  FigureTable table{.corner = "stream", .columns = {"%"}};
  for (const PatchedValue* value : values) {
    table.rows.push_back(value->name);
    table.cells.push_back({value->restored});
  }
  return table;
}

std::string answer_words(const PatchAnswer& answer) {
  constexpr int kLongest = 100;
  const std::string text = cell_text(answer.text, kLongest);
  return answer.token ? fmt::format("'{}' ({})", text, cell_text(answer.label, kLongest))
                      : fmt::format("'{}'", text);
}

std::string scores_line(const char* which, const AnswerScores& scores) {
  return fmt::format("{:<8}{:>12.4f}{:>12.4f}{:>12.4f}\n", which, scores.answer, scores.wrong,
                     scores.score());
}

std::string what_is_patched(PatchedPart part) {
  if (part == PatchedPart::kHeads) return "what a head gives";
  return part == PatchedPart::kPattern ? "a head's weights"
                                       : "the input of a layer, or the last one's output";
}

std::string strongest_part(const PatchReport& patching, int64_t count) {
  const std::vector<const PatchedValue*> values = patching.strongest(static_cast<size_t>(count));
  if (values.empty()) return "";
  std::string text = fmt::format("\n{:<30}{:>10}{:>10}{}\n", "strongest", "restored %", "score",
                                 patching.by_position ? "  position" : "");
  for (const PatchedValue* value : values) {
    text +=
        fmt::format("{:<30}{:>10.1f}{:>10.4f}", value->name, 100 * value->restored, value->scores.score());
    if (value->place.position)
      text += "  " + position_label(patching, value->place.stack, *value->place.position);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string patching_tables(const PatchReport& patching, int64_t strongest) {
  const PatchTexts& texts = patching.texts;
  const std::string of_token =
      texts.of_token ? fmt::format(", of token {}, {}", texts.predicting,
                                   printable_line(texts.clean.labels[static_cast<size_t>(texts.predicting)]))
                     : "";
  std::string text = wrapped(
      fmt::format("{} rather than {}{}", answer_words(texts.answer), answer_words(texts.wrong), of_token));
  const std::string measure = patching.score == PatchScore::kCosine  ? "cos "
                              : patching.score == PatchScore::kLogit ? "logit "
                                                                     : "log p ";
  text += fmt::format("{:<8}{:>12}{:>12}{:>12}\n", "", measure + "answer", measure + "wrong", "score");
  text += scores_line("clean", patching.clean) + scores_line("corrupt", patching.corrupt);

  std::vector<std::string> titles;  // in the order of the model
  std::map<std::string, std::vector<const PatchedValue*>> of_title;
  for (const PatchedValue& value : patching.values) {
    const std::string title = table_of(value.place);
    if (!of_title.contains(title)) titles.push_back(title);
    of_title[title].push_back(&value);
  }
  for (const std::string& title : titles) {
    const std::vector<const PatchedValue*>& values = of_title.at(title);
    text += fmt::format("\n{}, restored %\n", title);
    if (patching.by_position) {
      text += positions_by_layers(patching, values).text(restored_cell);
    } else {
      text += (patching.part == PatchedPart::kStream ? layers_of_stream(values) : layers_by_heads(values))
                  .text(restored_cell);
    }
  }
  text += strongest_part(patching, strongest);
  std::string legend = fmt::format(
      "restored: how much of the difference between the clean and the corrupt score comes back when {} is "
      "the "
      "clean run's in the corrupt run{}; 100: all of it, below 0: further away",
      what_is_patched(patching.part), patching.by_position ? ", at one position" : "");
  if (patching.by_position && patching.part != PatchedPart::kStream)
    legend += "; the table has the strongest head of each layer";
  return text + "\n" + wrapped(legend + ".");
}

}  // namespace mh::cli
