#include "multihead/heads/reports/report_options.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/heads/reports/report_json.h"
#include "multihead/io/strict_json.h"

namespace mh {

namespace detail {

std::string with_options(std::string_view report, std::string_view verb, const std::string& options) {
  MH_ASSERT(report.starts_with('{'));
  return fmt::format("{{\n \"verb\": \"{}\",\n \"options\": {},{}", verb, options, report.substr(1));
}

std::string options_in_report(std::string_view report, std::string_view verb, std::string_view file) {
  const auto fail = [&](const std::string& what) { return FormatError(fmt::format("{}: {}", file, what)); };
  const nlohmann::json json = parse_json_strictly(report, file);
  const auto expected = fmt::format("a report of `multihead heads {} --json`", verb);
  if (!json.is_object() || !json.contains("schema") || !json.contains("options") || !json.contains("verb"))
    throw fail(fmt::format("expected {}, with \"schema\", \"verb\" and \"options\"", expected));
  if (json["schema"] != kHeadsSchema)
    throw fail(fmt::format("its schema is {}, and this version reads {}; make the report again",
                           json_excerpt(json["schema"]), kHeadsSchema));
  if (json["verb"] != verb)
    throw fail(fmt::format("expected {}, got one of {}", expected, json_excerpt(json["verb"])));
  return json["options"].dump();
}

}  // namespace detail
}  // namespace mh
