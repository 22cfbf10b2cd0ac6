#include "cli/heads/where_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/common.h"
#include "cli/corpus_flags.h"
#include "cli/heads_report.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/sites/observe_text.h"

namespace mh::cli {
namespace {

constexpr int kPageColumns = 80;

/// A cell of exactly `width` columns of a terminal.
std::string cell(std::string_view text, int width) {
  std::string shown = cell_text(text, width);
  shown.append(static_cast<size_t>(width - display_width(shown)), ' ');
  return shown;
}

std::string trimmed_line(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

bool is_piece(const EvidenceToken& token) {
  return std::ssize(terminal_characters(token.word)) != token.end - token.begin;
}
/// "running", or "running (##ing)" where the token is a piece of it.
std::string word_and_piece(const EvidenceToken& token) {
  if (token.word.empty() || !is_piece(token)) return token.form();
  return fmt::format("{} ({})", token.word, token.token);
}
const std::string& word_or_piece(const EvidenceToken& token) {
  return is_piece(token) ? token.token : token.form();
}

/// Both in `width` columns.
std::string pair_cell(const std::string& query, const std::string& key, int width) {
  const int most = (width - 3) / 2;
  return cell_text(query, most) + " \u2192 " + cell_text(key, most);
}

std::string sentence_lines(const EvidenceSentence& sentence, AttentionKind kind, bool colours) {
  const MarkedPart query{.begin = sentence.query.begin,
                         .end = sentence.query.end,
                         .open = "[",
                         .close = "]",
                         .colour = colours ? "\x1b[1;36m" : ""};
  const MarkedPart key{.begin = sentence.key.begin,
                       .end = sentence.key.end,
                       .open = "{",
                       .close = "}",
                       .colour = colours ? "\x1b[1;33m" : ""};
  const std::string indent = "      ";
  const int width = kPageColumns - static_cast<int>(indent.size());
  std::string text = fmt::format("{:.2f}  ", sentence.strength);
  text += pair_cell(word_and_piece(sentence.query), word_and_piece(sentence.key), 57) +
          fmt::format(", line {}\n", grouped(sentence.line));
  if (kind != AttentionKind::kCross)
    return text + indent + excerpt(*sentence.query_text, {query, key}, width) + "\n";
  text += indent + excerpt(*sentence.query_text, {query}, width) + "\n";
  return text + indent + excerpt(*sentence.key_text, {key}, width) + "\n";
}

std::string share_cells(const std::vector<TokenShare>& shares, size_t row) {
  if (row >= shares.size()) return std::string(38, ' ');
  const TokenShare& share = shares[row];
  return cell(share.token, 14) + fmt::format("{:>6.1f}{:>6.1f}{:>6.1f}{:>6.2f}", 100 * share.share,
                                             100 * share.expected, share.lift(), share.weight);
}

std::string share_tables(const HeadEvidence& head) {
  const size_t rows = std::max(head.key_tokens.size(), head.query_tokens.size());
  if (rows == 0) return "";
  std::string text = fmt::format("\n{:<14}{:>6}{:>6}{:>6}{:>6}    {:<14}{:>6}{:>6}{:>6}{:>6}\n", "key chosen",
                                 "%", "even", "lift", "w", "sure query", "%", "all", "lift", "rate");
  for (size_t row = 0; row < rows; ++row)
    text += trimmed_line(share_cells(head.key_tokens, row) + "    " + share_cells(head.query_tokens, row));
  return text;
}

std::string alike_table(const HeadEvidence& head) {
  if (head.alike.empty()) return "";
  std::string text = fmt::format("\n{:<32}{:>10}{:>14}\n", "most like it", "same key %", "by chance %");
  for (const HeadLike& like : head.alike)
    text += fmt::format("{:<32}{:>10.1f}{:>14.1f}\n", like.head.name(), 100 * like.agreement,
                        100 * like.by_chance);
  return text;
}

std::string page_of(const HeadEvidence& head, bool colours) {
  const AttentionKind kind = head.place.kind;
  std::string text = fmt::format("\n{}: {}\n", head.name(), what_attends(kind));
  if (head.sentences() == 0) return text + "No sentence has two words.\n";
  text += wrapped(fmt::format(
      "Strength of {}: 25 % below {:.2f}, half below {:.2f}, 75 % below {:.2f}. Sure at "
      "{} % of {}.",
      counted(head.sentences(), "sentence"), *head.quantile(0.25), *head.quantile(0.5), *head.quantile(0.75),
      whole_percent(static_cast<double>(head.sure) / static_cast<double>(head.queries)),
      counted(head.queries, "query", "queries")));
  if (!head.strongest.empty()) text += "\nThe strongest, [query] \u2192 {key}\n";
  for (const EvidenceSentence& sentence : head.strongest) text += sentence_lines(sentence, kind, colours);
  if (!head.usual.empty()) text += "\nUsual ones, of about the median strength\n";
  for (const EvidenceSentence& sentence : head.usual) text += sentence_lines(sentence, kind, colours);
  return text + share_tables(head) + alike_table(head);
}

/// "the x3.4"
std::string first_token(const std::vector<TokenShare>& shares, int width) {
  if (shares.empty()) return cell("-", width);
  const std::string lift = fmt::format(" x{:.1f}", shares[0].lift());
  return cell(cell_text(shares[0].token, width - static_cast<int>(lift.size())) + lift, width);
}

std::string line_of_evidence(const HeadEvidence& head) {
  const auto median = head.quantile(0.5);
  std::string line =
      fmt::format("{:>4}{:>5}{:>5}  ", head.head,
                  head.strongest.empty() ? "-" : fmt::format("{:.2f}", head.strongest[0].strength),
                  median ? fmt::format("{:.2f}", *median) : "-");
  line += first_token(head.key_tokens, 14) + " " + first_token(head.query_tokens, 14) + " ";
  std::string pair = "-";
  if (!head.strongest.empty()) {
    const EvidenceSentence& first = head.strongest[0];
    pair = pair_cell(word_or_piece(first.query), word_or_piece(first.key), 23);
  }
  line += cell(pair, 23) + " ";
  if (!head.alike.empty()) {
    const HeadLike& like = head.alike[0];
    line += fmt::format("{:>6} {:>3}", fmt::format("{}.{}", like.layer, like.head.head),
                        whole_percent(like.agreement));
  }
  return trimmed_line(std::move(line));
}

}  // namespace

std::string evidence_pages(const WhereReport& report, bool colours) {
  std::string text = what_was_read(report.read);
  for (const HeadEvidence& head : report.heads) text += page_of(head, colours);
  return text + "\n" +
         wrapped(
             "Strength: the largest weight from a token of the text to another one. key chosen: of the "
             "queries' largest weights, how much is on this token, in %, and if all keys were chosen evenly; "
             "w: "
             "the mean of these weights. sure query: share of this token in the queries whose largest weight "
             "is "
             "at "
             "least --sure, and in all queries; rate: how many of its queries are so. lift: the first share "
             "divided by the second. same key: queries of both heads with the same choice; by chance: if "
             "both "
             "chose evenly. Attention is not yet an explanation: docs/heads/where.md.");
}

std::string evidence_table(const WhereReport& report) {
  std::string text = what_was_read(report.read), attention;
  for (const HeadEvidence& head : report.heads) {
    if (head.attention != attention) {
      attention = head.attention;
      text += fmt::format("\n{}\nhead  max  med  {:<15}{:<15}{:<24}most like\n", attention, "key chosen",
                          "sure query", "strongest pair");
    }
    text += line_of_evidence(head);
  }
  return text + "\n" +
         wrapped(
             "max, med: the largest and the median strength of a sentence, its largest weight from a token "
             "of "
             "the text to another one; key chosen, sure query: the token that stands out most, and how many "
             "times its share is what chance would have; most like: layer.head of the same kind, and for how "
             "many of the queries both choose the same key, in %. docs/heads/where.md has the formulas.");
}

}  // namespace mh::cli
