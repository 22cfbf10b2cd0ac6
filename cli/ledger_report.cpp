#include "cli/ledger_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/error_line.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

using nlohmann::ordered_json;

const char* path_name(AttentionPath path) {
  return path == AttentionPath::kFused ? "the fused kernel, which writes no matrix of weights"
                                       : "the composed path, which writes matrices of weights";
}

std::string number(int64_t n) {
  return grouped(n);
}

std::string share(int64_t a, int64_t of) {
  return of == 0 ? "-" : fmt::format("{:.3f}", static_cast<double>(a) / static_cast<double>(of));
}

ordered_json json_of(const LedgerPart& p) {
  return {{"part", p.name},
          {"parameters", p.parameters},
          {"multiply_adds", p.multiply_adds},
          {"other_flops", p.other_flops},
          {"flops", p.flops()},
          {"exponentials", p.exponentials},
          {"bytes",
           {{"weights", p.weight_bytes()},
            {"read", p.read_bytes},
            {"written", p.written_bytes},
            {"kept", p.kept_bytes}}}};
}

}  // namespace

std::string ledger_table(const Account& account) {
  std::string text = fmt::format("{}\n{}\n{};\nattention is computed by {}\n", printable_line(account.name),
                                 account.sizes, account.tokens, path_name(account.path));
  std::vector<LedgerPart> rows = account.parts;
  rows.push_back(account.total);
  text += fmt::format("\n{:<23} {:>13} {:>15} {:>13} {:>12}\n", "", "parameters", "multiply-adds",
                      "other FLOPs", "exp");
  for (const LedgerPart& p : rows) {
    text += fmt::format("{:<23} {:>13} {:>15} {:>13} {:>12}\n", p.name, number(p.parameters),
                        number(p.multiply_adds), number(p.other_flops), number(p.exponentials));
  }
  text +=
      fmt::format("\n{:<23} {:>13} {:>13} {:>13} {:>13}\n", "bytes", "weights", "read", "written", "kept");
  for (const LedgerPart& p : rows) {
    text += fmt::format("{:<23} {:>13} {:>13} {:>13} {:>13}\n", p.name, number(p.weight_bytes()),
                        number(p.read_bytes), number(p.written_bytes), number(p.kept_bytes));
  }
  text += fmt::format(
      "\n{} FLOPs: a multiply-add is two, exponentials are not among them.\n"
      "Forward. Bytes count float32 numbers, each activation read and written once;\n"
      "kept: by training, until the backward pass.\n",
      number(account.total.flops()));
  return text;
}

std::string ledger_comparison(const std::vector<ComparedLedger>& all, const std::string& what) {
  std::string text = fmt::format("{}\n{}\n\n{:<20} {:>12} {:>16} {:>13} {:>15}\n", printable_line(what),
                                 all.front().account.tokens, "", "parameters", "FLOPs", "exp", "bytes kept");
  for (const auto& [name, account] : all) {
    const LedgerPart& p = account.total;
    text += fmt::format("{:<20} {:>12} {:>16} {:>13} {:>15}\n", name, number(p.parameters), number(p.flops()),
                        number(p.exponentials), number(p.kept_bytes));
  }
  text += fmt::format("\n{:<20} {:>12} {:>16} {:>13} {:>15}\n", "times " + all.front().name, "parameters",
                      "FLOPs", "exp", "bytes kept");
  const LedgerPart& first = all.front().account.total;
  for (const auto& [name, account] : all) {
    const LedgerPart& p = account.total;
    text += fmt::format("{:<20} {:>12} {:>16} {:>13} {:>15}\n", name, share(p.parameters, first.parameters),
                        share(p.flops(), first.flops()), share(p.exponentials, first.exponentials),
                        share(p.kept_bytes, first.kept_bytes));
  }
  for (const auto& [name, account] : all) {
    if (account.path == AttentionPath::kComposed)
      text += fmt::format("{}: attention is computed by {}\n", name, path_name(account.path));
  }
  return text;
}

nlohmann::ordered_json ledger_json(const Account& account) {
  ordered_json json{{"of", account.name},
                    {"sizes", account.sizes},
                    {"tokens", account.tokens},
                    {"path", account.path == AttentionPath::kFused ? "fused" : "composed"}};
  for (const LedgerPart& part : account.parts) json["parts"].push_back(json_of(part));
  json["total"] = json_of(account.total);
  return json;
}

}  // namespace mh::cli
