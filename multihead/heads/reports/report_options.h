// The settings with which a report about heads was made, in the report: its "options" (docs/file-formats.md). A report can be
// made again from them: multihead heads importance MODEL --options report.json. Beside them stands the "precision" of the model that was
// run.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "multihead/base/precision.h"
#include "multihead/io/config.h"

namespace mh {
namespace detail {
/// The report with "verb", "precision" and "options" before its other members.
std::string with_options(std::string_view report, std::string_view verb, const std::string& options,
                         std::optional<PrecisionChoice> precision);
/// The text of "options" in a report of `verb`. Throws FormatError, `file` first.
std::string options_in_report(std::string_view report, std::string_view verb, std::string_view file);
}  // namespace detail

/// The report of `multihead heads VERB` with the settings that it was made with, and the precision of the model; none: the model was
/// not run, the report is about its weights.
template <class Settings>
std::string with_options(std::string_view report, std::string_view verb, const Settings& settings,
                         std::optional<PrecisionChoice> precision = std::nullopt) {
  return detail::with_options(report, verb, to_json_line(settings), precision);
}

/// The precision with which a report was made; none where it does not say, as older ones do not. Throws FormatError, `file` first.
std::optional<PrecisionChoice> precision_in_report(std::string_view report, std::string_view file);

/// Puts the options of a report of `multihead heads VERB` into `settings`; what it does not have stays. `file` is what messages call
/// the report. Throws FormatError on what is no such report, on one of another verb or of another schema, and on options that there
/// are not, with the nearest name.
template <class Settings>
void read_report_options(Settings& settings, std::string_view report, std::string_view verb,
                         std::string_view file) {
  from_json(settings, detail::options_in_report(report, verb, file), std::string(file) + ": options");
}

}  // namespace mh
