#include "cli/heads/lens_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/error_line.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

constexpr int kPlaceColumns = 9, kLensColumns = 80;
constexpr int kWordColumns = 20;  // of one position
constexpr int kGridWord = 9;      // of several, and a space
constexpr size_t kLabelsShown = 5;

std::string left_cell(const std::string& text, int width) {
  const std::string cut = cell_text(text, width - 1);
  return cut + std::string(static_cast<size_t>(width - display_width(cut)), ' ');
}

std::string right_cell(const std::string& text, int width) {
  const std::string cut = cell_text(text, width - 1);
  return std::string(static_cast<size_t>(width - display_width(cut)), ' ') + cut;
}

std::string number_or_dash(const std::optional<double>& number, int width) {
  return number ? fmt::format("{:>{}.4f}", *number, width) : fmt::format("{:>{}}", "-", width);
}

/// Whose rank a table has.
const std::optional<LensRank>& rank_shown(const LensReport& lens, const LensReading& reading) {
  if (lens.answer) return reading.answer;
  return reading.actual ? reading.actual : reading.predicted;
}

const char* first_column(const LensReport& lens) {
  return lens.says == LensSays::kWords ? "word" : "label";
}

std::string whose_rank(const LensReport& lens) {
  if (lens.answer) {
    return fmt::format("'{}' ({})", printable_line(lens.answer->text),
                       printable_line(lens.answer->token.token));
  }
  const LensPosition& position = lens.positions[0];
  if (position.actual) return fmt::format("{}, which the text has here", position.actual->token);
  return fmt::format("{}, which the model says in the end", position.predicted->token);
}

std::string ranks_at_one_position(const LensReport& lens) {
  const LensPosition& position = lens.positions[0];
  const std::string at =
      position.position ? fmt::format("At token {}, {}. ", *position.position, printable_line(position.token))
                        : "";
  std::string text = wrapped(fmt::format("{}rank, log p: of {}", at, whose_rank(lens)));
  text += left_cell("layer", kPlaceColumns) + left_cell(first_column(lens), kWordColumns) +
          fmt::format("{:>8}{:>9}{:>11}{:>10}{:>10}\n", "p", "rank", "log p", "entropy", "KL");
  for (size_t place = 0; place < lens.places.size(); ++place) {
    const LensReading& reading = lens.at(place, 0);
    const LensRank& rank = *rank_shown(lens, reading);
    text += left_cell(lens.places[place].name(), kPlaceColumns) +
            left_cell(reading.best[0].token, kWordColumns) +
            fmt::format("{:>8.4f}{:>9}{:>11.4f}", reading.best[0].score, rank.rank, rank.log_probability) +
            number_or_dash(reading.entropy, 10) + number_or_dash(reading.divergence, 10) + "\n";
  }
  return text;
}

/// What a place gives the label of this number.
double score_of(const LensReading& reading, int32_t id) {
  return std::find_if(reading.best.begin(), reading.best.end(),
                      [&](const LensWord& label) { return label.id == id; })
      ->score;
}

std::string labels_at_one_position(const LensReport& lens) {
  const std::vector<LensWord>& end = lens.at(lens.places.size() - 1, 0).best;
  const size_t shown = std::min(end.size(), kLabelsShown);
  std::string text;
  if (const LensPosition& position = lens.positions[0]; position.position)
    text += fmt::format("At token {}, {}\n", *position.position, printable_line(position.token));
  if (shown < end.size()) text += fmt::format("the {} best in the end of {} labels\n", shown, end.size());
  text += left_cell("layer", kPlaceColumns);
  for (size_t i = 0; i < shown; ++i) text += right_cell(end[i].token, 10);
  const bool shares = lens.scores == LabelScores::kSoftmax;
  if (shares) text += fmt::format("{:>10}{:>10}", "entropy", "KL");
  text += "\n";
  for (size_t place = 0; place < lens.places.size(); ++place) {
    const LensReading& reading = lens.at(place, 0);
    text += left_cell(lens.places[place].name(), kPlaceColumns);
    for (size_t i = 0; i < shown; ++i) text += fmt::format("{:>10.4f}", score_of(reading, end[i].id));
    if (shares) text += number_or_dash(reading.entropy, 10) + number_or_dash(reading.divergence, 10);
    text += "\n";
  }
  return text;
}

/// Places down, positions across; cell: what stands at a place and a position.
template <class Cell>
std::string grid_of(const LensReport& lens, const Cell& cell) {
  constexpr size_t kAtOnce = (kLensColumns - kPlaceColumns) / (kGridWord + 1);
  std::string text;
  const auto add_line = [&](const std::string& name, size_t begin, size_t end, const auto& cell_at) {
    std::string line = left_cell(name, kPlaceColumns);
    for (size_t i = begin; i < end; ++i) line += left_cell(cell_at(i), kGridWord + 1);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  for (size_t begin = 0; begin < lens.positions.size(); begin += kAtOnce) {
    const size_t end = std::min(begin + kAtOnce, lens.positions.size());
    if (begin > 0) text += "\n";
    add_line("token", begin, end, [&](size_t i) { return std::to_string(*lens.positions[i].position); });
    add_line("", begin, end, [&](size_t i) { return lens.positions[i].token; });
    for (size_t place = 0; place < lens.places.size(); ++place)
      add_line(lens.places[place].name(), begin, end, [&](size_t i) { return cell(lens.at(place, i)); });
  }
  return text;
}

std::string grids(const LensReport& lens) {
  std::string text = grid_of(lens, [](const LensReading& reading) { return reading.best[0].token; });
  if (!lens.answer) return text;
  return text + fmt::format("\nrank of {}\n", whose_rank(lens)) +
         grid_of(lens, [](const LensReading& reading) { return std::to_string(reading.answer->rank); });
}

std::string cosines_table(const LensReport& lens) {
  std::string text = left_cell("layer", kPlaceColumns) +
                     fmt::format("{:>10}{}\n", "own", lens.second.empty() ? "" : "    second");
  for (size_t place = 0; place < lens.places.size(); ++place) {
    const LensCosines& cosines = lens.cosines[place];
    text += left_cell(lens.places[place].name(), kPlaceColumns) + fmt::format("{:>10.4f}", cosines.own);
    if (cosines.second) text += fmt::format("{:>10.4f}", *cosines.second);
    text += "\n";
  }
  return text + "\n" +
         wrapped(fmt::format(
             "own: cosine of the vector made of the stream after each layer with the text's own vector{}. "
             "docs/heads/lens.md says what that means.",
             lens.second.empty() ? "" : "; second: with the vector of the second text"));
}

}  // namespace

std::string lens_table(const LensReport& lens) {
  if (lens.says == LensSays::kVectors) return cosines_table(lens);
  std::string text;
  if (!lens.translation.empty())
    text += wrapped("translation: " + printable_line(lens.translation), "", kLensColumns, "  ");
  if (lens.positions.size() > 1) {
    return text + grids(lens) + "\n" +
           wrapped(fmt::format(
               "The most probable {} by the stream after each layer, read by the model's own end; the last "
               "line is what the model says. A layer that says another does not say so yet, but may know: "
               "docs/heads/lens.md. --position N shows probabilities.",
               first_column(lens)));
  }
  const bool ranks = lens.says == LensSays::kWords || lens.answer;
  text += ranks ? ranks_at_one_position(lens) : labels_at_one_position(lens);
  std::string legend = "Each line: what the model's own end makes of the stream after this layer";
  if (ranks) legend += fmt::format("; p: of the most probable {}", first_column(lens));
  legend += ". ";
  if (lens.at(0, 0).entropy) {
    legend +=
        "entropy, KL: nats; KL: of what the model says in the end from what this line says, KL(end || "
        "line). ";
  }
  return text + "\n" + wrapped(legend + "docs/heads/lens.md says what that means.");
}

}  // namespace mh::cli
