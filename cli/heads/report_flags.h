// What the verbs of `heads` that give a report have in common: the model, the flags that come from their settings, --options, which
// takes these from a report of that verb, and where the report goes.
#pragma once

#include <optional>
#include <string>

#include "cli/common.h"
#include "cli/load_model.h"
#include "cli/setting_flags.h"
#include "cli/verb.h"
#include "multihead/base/file.h"
#include "multihead/heads/reports/report_options.h"

namespace mh::cli {

/// The flags of these settings, and --options FILE.
template <class Settings>
class SettingsOfReport {
 public:
  void add(Verb& verb) {
    name_ = verb.get_name();
    flags_.add(verb, Settings());
    verb.add_option("--options", file_,
                    "Take the options of this report (--json) of the verb; flags change them")
        ->type_name("FILE");
    rare_flags(verb, {"--options"});
  }
  /// The defaults, in their place what the report has, in its place what was given.
  Settings given() const {
    Settings settings;
    if (!file_.empty()) read_report_options(settings, read_file(file_), name_, file_);
    flags_.take(settings);
    return settings;
  }
  /// That of the report; none: there is no report, or it does not say.
  std::optional<PrecisionChoice> precision() const {
    return file_.empty() ? std::nullopt : precision_in_report(read_file(file_), file_);
  }
  template <class Made>
  std::string with_options(const std::string& report, const Made& made_with,
                           std::optional<PrecisionChoice> precision = std::nullopt) const {
    return mh::with_options(report, name_, made_with, precision);
  }

 private:
  SettingFlags flags_;
  std::string name_, file_;
};

enum class RunsModel { kNo, kYes };

template <class Settings>
struct ReportFlags {
  ModelFlags model = {};
  std::string output = {};
  bool json = false;
  SettingsOfReport<Settings> settings = {};

  const Flag* precision = nullptr;  // null: the model is not run, the report is about its weights

  void add(Verb& verb, const char* help_of_json = "Write JSON instead of a table",
           RunsModel runs = RunsModel::kYes) {
    constexpr const char* kHelp = "The model folder, a .gguf file, or demo";
    (runs == RunsModel::kYes ? add_model(verb, model, kHelp) : add_model(verb, model.path, kHelp))
        ->required();
    precision = verb.find("--precision");
    add_output_flag(verb, "-o,--output", output, "Write to this file instead of standard output")
        ->type_name("FILE");
    verb.add_flag("--json", json, help_of_json);
    settings.add(verb);
  }
  /// As --precision says, or else the report of --options.
  ModelFlags model_to_run() const {
    ModelFlags chosen = model;
    if (precision->count() == 0) chosen.precision = settings.precision().value_or(model.precision);
    return chosen;
  }
  /// Writes what was found with these settings as json_of(found, model), with the options, or as table_of(found).
  template <class Found, class Made, class JsonOf, class TableOf>
  void write(const Found& found, const Made& made_with, const JsonOf& json_of,
             const TableOf& table_of) const {
    if (!json) return write_text(output, table_of(found));
    const auto ran = precision == nullptr ? std::nullopt : std::optional(model_to_run().precision);
    write_text(output, settings.with_options(json_of(found, model.path), made_with, ran));
  }
};

}  // namespace mh::cli
