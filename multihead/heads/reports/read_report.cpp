#include "multihead/heads/reports/read_report.h"

#include <fmt/format.h>

#include <string>

#include "multihead/base/error.h"
#include "multihead/heads/reports/report_json.h"

namespace mh {

nlohmann::json read_report(std::string_view report, std::string_view verb, std::string_view file) {
  const auto fail = [&](const std::string& what) { return FormatError(fmt::format("{}: {}", file, what)); };
  nlohmann::json json = parse_json_strictly(report, file);
  const auto expected = fmt::format("a report of `multihead heads {} --json`", verb);
  if (!json.is_object() || !json.contains("schema") || !json.contains("options") || !json.contains("verb"))
    throw fail(fmt::format("expected {}, with \"schema\", \"verb\" and \"options\"", expected));
  if (json["schema"] != kHeadsSchema)
    throw fail(fmt::format("its schema is {}, and this version reads {}; make the report again",
                           json_excerpt(json["schema"]), kHeadsSchema));
  if (json["verb"] != verb)
    throw fail(fmt::format("expected {}, got one of {}", expected, json_excerpt(json["verb"])));
  return json;
}

}  // namespace mh
