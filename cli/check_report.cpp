#include "cli/check_report.h"

#include <fmt/format.h>

#include "cli/common.h"

namespace mh::cli {
namespace {

std::string check_cell(const std::optional<double>& difference) {
  return difference ? fmt::format("{:>11.1e}", *difference) : fmt::format("{:>11}", "-");
}

std::string check_line(const PartDifference& part, double tolerance) {
  std::string line = fmt::format("{:<44}", part.part);
  for (const auto& difference : part.differences) line += check_cell(difference);
  return line + (largest(part.differences) <= tolerance ? "\n" : " *\n");
}

std::string token_word(const std::optional<int32_t>& id) {
  return id ? fmt::format("{}", *id) : "the end";
}

std::string greedy_line(const CheckReport& report) {
  if (report.greedy_texts == 0) return {};
  if (const auto& greedy = report.greedy) {
    return fmt::format("greedy text {} differs at token {}: {} here, {} there\n", greedy->text + 1,
                       greedy->token + 1, token_word(greedy->here), greedy->there);
  }
  const std::string ties =
      report.greedy_ties == 0
          ? std::string()
          : fmt::format(", but {} where two tokens are equally probable", report.greedy_ties);
  return fmt::format("greedy text: {} with the same tokens{}\n",
                     counted(static_cast<int64_t>(report.greedy_texts), "text"), ties);
}

std::string verdict(const CheckReport& report) {
  if (report.first) {
    return fmt::format("differs, first at {} ({:.1e}; text {}, row {})\n", report.first->site,
                       largest(report.first->differences), report.first->text + 1, report.first->row);
  }
  if (report.greedy) return "differs: sites are alike, but a greedy text is another\n";
  if (!report.threads_agree) return "differs: two threads give other bits than one\n";
  return fmt::format("right: all {} sites that were compared are within {:g}\n", report.sites.size(),
                     report.options.tolerance);
}

}  // namespace

std::string check_table(const CheckReport& report) {
  int64_t tokens = 0;
  for (const auto& ids : report.texts.ids) tokens += std::ssize(ids);
  std::string table = fmt::format(
      "{} of {}, {} in all, beside {}\nof transformers {} (torch {}, Python {}),\nrun by {}\n\n",
      counted(std::ssize(report.texts.ids), "text"), report.model_type, counted(tokens, "token"),
      report.transformers_class, report.transformers, report.torch, report.python, report.executable);
  table +=
      fmt::format("{:<44}{:>11}{:>11}{:>11}\n", "largest relative difference", "together", "alone", "cached");
  for (const PartDifference& part : report.parts) table += check_line(part, report.options.tolerance);
  table += "\n" + greedy_line(report);
  if (report.threads_agree) table += "one thread and two: the same bits\n";
  return table + verdict(report);
}

}  // namespace mh::cli
