#include "cli/heads/steer_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

constexpr int kStrengthCell = 9, kDoseCell = 14;  // columns of a figure
constexpr size_t kAnswersAtOnce = 3;              // that leave room for loss and perplexity in 80 columns

/// The text, flush right.
std::string dose_cell(std::string_view text) {
  const int space = std::max(1, kDoseCell - display_width(text));
  return std::string(static_cast<size_t>(space), ' ') + std::string(text);
}

std::string perplexity_text(double perplexity) {
  if (!std::isfinite(perplexity)) return "inf";
  return perplexity < 1e6 ? fmt::format("{:.2f}", perplexity) : fmt::format("{:.2e}", perplexity);
}

/// The answers [begin, end), and loss and perplexity of other text.
std::string doses_part(const SteerReport& steering, size_t begin, size_t end, bool with_loss) {
  std::string text = fmt::format("{:>{}}", "strength", kStrengthCell);
  for (size_t answer = begin; answer < end; ++answer)
    text += dose_cell(cell_text(steering.texts[0].answers[answer].text, kDoseCell - 2));
  if (with_loss) text += dose_cell("loss") + dose_cell("perplexity");
  text += "\n";
  for (const SteerDose& dose : steering.doses) {
    text += fmt::format("{:>{}g}", dose.strength, kStrengthCell);
    for (size_t answer = begin; answer < end; ++answer)
      text += dose_cell(fmt::format("{:.4f}", dose.mean(answer)));
    if (with_loss)
      text += dose_cell(fmt::format("{:.4f}", *dose.loss)) + dose_cell(perplexity_text(dose.perplexity()));
    text += "\n";
  }
  return text;
}

std::string direction_lines(const SteerDirection& direction) {
  std::string where = printable_line(direction.site);
  if (direction.head) where += fmt::format(", head {}", *direction.head);
  std::string text = wrapped(fmt::format("direction at {}: {}", where, printable_line(direction.made)));
  text += fmt::format("length {:.4g}", direction.length());
  if (direction.row_length)
    text += fmt::format("; the rows that it was made of: {:.4g}", *direction.row_length);
  return text + "\n";
}

std::string doses_legend(const SteerReport& steering) {
  std::string legend = "strength: what the direction is multiplied by before it is added at every position";
  if (steering.answers() > 0) {
    legend += "; a word: its log-probability";
    legend += steering.texts.size() == 1
                  ? " in its place in the text"
                  : fmt::format(" in its place, the mean over {} texts", steering.texts.size());
  }
  if (steering.other_tokens > 0)
    legend += fmt::format(
        "; loss: -log p of a token of other text, the mean over {} of {}; perplexity: e to the loss",
        counted(steering.other_tokens, "token"), counted(steering.other_texts, "line"));
  return wrapped(legend + ".");
}

}  // namespace

std::string steering_tables(const SteerReport& steering) {
  std::string text = direction_lines(steering.direction);
  if (steering.doses.empty()) return text;
  const size_t answers = steering.answers();
  const bool has_loss = steering.doses[0].loss.has_value();
  for (size_t begin = 0; begin == 0 || begin < answers; begin += kAnswersAtOnce)
    text +=
        "\n" + doses_part(steering, begin, std::min(answers, begin + kAnswersAtOnce), has_loss && begin == 0);
  return text + "\n" + doses_legend(steering);
}

}  // namespace mh::cli
