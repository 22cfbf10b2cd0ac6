#include "multihead/heads/reports/report_options.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/heads/reports/json_parts.h"
#include "multihead/heads/reports/read_report.h"
#include "multihead/io/strict_json.h"
#include "multihead/kernels/product_kernels.h"

namespace mh {

namespace detail {

std::string with_options(std::string_view report, std::string_view verb, const std::string& options,
                         std::optional<PrecisionChoice> precision) {
  MH_ASSERT(report.starts_with('{'));
  const std::string run = precision
                              ? fmt::format(" \"precision\": \"{}\",\n \"kernels\": {},\n",
                                            precision_name(*precision), json_of_kernels(*precision).dump())
                              : "";
  return fmt::format("{{\n \"verb\": \"{}\",\n{} \"options\": {},{}", verb, run, options, report.substr(1));
}

std::string options_in_report(std::string_view report, std::string_view verb, std::string_view file) {
  return read_report(report, verb, file)["options"].dump();
}

}  // namespace detail

std::optional<PrecisionChoice> precision_in_report(std::string_view report, std::string_view file) {
  const nlohmann::json json = parse_json_strictly(report, file);
  const auto found = json.find("precision");
  if (found == json.end()) return std::nullopt;
  if (!found->is_string())
    throw FormatError(fmt::format("{}: precision: expected {}, got {}", file, names_listed(kPrecisionNames),
                                  json_excerpt(*found)));
  const auto name = found->get<std::string>();
  const auto precision = precision_named(name);
  if (!precision)
    throw FormatError(
        fmt::format("{}: precision: expected {}, got {}", file, precisions_like(name), json_excerpt(*found)));
  return precision;
}

}  // namespace mh
