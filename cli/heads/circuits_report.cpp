#include "cli/heads/circuits_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/common.h"
#include "multihead/base/terminal_text.h"
#include "multihead/nn/heads.h"

namespace mh::cli {
namespace {

constexpr size_t kValuesShown = 3;

/// Three digits, or fewer of small numbers: at most 6 columns.
std::string short_number(double number) {
  if (number != 0 && number < 0.01) return fmt::format("{:.0e}", number);
  return number < 1e5 ? fmt::format("{:.3g}", number) : fmt::format("{:.0e}", number);
}

/// 6 + 7 + 3 * 7 columns.
std::string circuit_cells(const Circuit& circuit) {
  std::string cells = fmt::format("{:>6.1f}{:>7}", circuit.effective_rank, short_number(circuit.norm));
  for (size_t i = 0; i < kValuesShown; ++i) {
    cells += fmt::format("{:>7}",
                         i < circuit.singular_values.size() ? short_number(circuit.singular_values[i]) : "-");
  }
  return cells;
}

char letter_of_part(HeadPart part) {
  return static_cast<char>(letter_of(part) - 'a' + 'A');
}

std::string compositions_part(const CircuitsReport& circuits, size_t count) {
  const std::vector<Composition> strongest = strongest_compositions(circuits, count);
  if (strongest.empty()) return "";
  std::string text = fmt::format("\nThe strongest of {}\n{:<30}{:<30}{:>2}{:>9}{:>9}\n",
                                 counted(static_cast<int64_t>(circuits.compositions.size()), "composition"),
                                 "what this head writes", "this head reads", "as", "strength", "random");
  for (const Composition& composition : strongest) {
    text += fmt::format("{:<30}{:<30}{:>2}{:>9.3f}{:>9.3f}\n", circuits.heads[composition.from].name(),
                        circuits.heads[composition.to].name(), letter_of_part(composition.part),
                        composition.strength, composition.random);
  }
  return text;
}

}  // namespace

std::string circuits_table(const CircuitsReport& circuits, const CircuitsTableOptions& options) {
  std::string text, attention;
  const bool copies = std::any_of(circuits.heads.begin(), circuits.heads.end(),
                                  [](const HeadCircuits& head) { return head.copying.has_value(); });
  for (const HeadCircuits& head : circuits.heads) {
    if (head.attention != attention) {
      attention = head.attention;
      text += fmt::format("{}{}\n{:4}  {:<34}{}\n", text.empty() ? "" : "\n", attention, "",
                          "W_QK = W_Q W_K^T", "W_OV = W_V W_O");
      text += "head";
      for (int circuit = 0; circuit < 2; ++circuit)
        text += fmt::format("{:>6}{:>7}{:>21}", "rank", "norm", "largest values");
      text += copies ? "    copy\n" : "\n";
    }
    text +=
        fmt::format("{:>4}", head.head) + circuit_cells(head.query_key) + circuit_cells(head.value_output);
    if (copies) text += head.copying ? fmt::format("{:>+8.2f}", *head.copying) : fmt::format("{:>8}", "-");
    text += "\n";
  }
  std::string legend =
      "rank: effective rank, how many directions matter; norm: Frobenius; largest values: the largest "
      "singular "
      "values";
  if (copies) {
    legend +=
        "; copy: of the eigenvalues of W_E W_OV W_U, real parts over absolute values, 1 where a head makes "
        "the "
        "tokens that it reads more probable, -1 where less";
  }
  const std::string compositions = compositions_part(circuits, options.compositions);
  if (!compositions.empty()) {
    legend +=
        "; strength: |A B| / (|A| |B|) of W_OV, A, and what reads it, B: W_QK by queries (Q), W_QK^T by keys "
        "(K), "
        "W_OV by values (V); random: its mean for random matrices";
  }
  return text + compositions + "\n" + wrapped(legend + ".");
}

}  // namespace mh::cli
