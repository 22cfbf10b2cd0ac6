// What the verbs of `heads` that give a report have in common: the model, the flags that come from their settings, --options, which
// takes these from a report of that verb, and where the report goes.
#pragma once

#include <string>

#include "cli/common.h"
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
  template <class Made>
  std::string with_options(const std::string& report, const Made& made_with) const {
    return mh::with_options(report, name_, made_with);
  }

 private:
  SettingFlags flags_;
  std::string name_, file_;
};

template <class Settings>
struct ReportFlags {
  std::string model = {}, output = {};
  bool json = false;
  SettingsOfReport<Settings> settings = {};

  void add(Verb& verb, const char* help_of_json = "Write JSON instead of a table") {
    add_model(verb, model, "The model folder, a .gguf file, or demo")->required();
    add_output_flag(verb, "-o,--output", output, "Write to this file instead of standard output")
        ->type_name("FILE");
    verb.add_flag("--json", json, help_of_json);
    settings.add(verb);
  }
  /// Writes what was found with these settings as json_of(found, model), with the options, or as table_of(found).
  template <class Found, class Made, class JsonOf, class TableOf>
  void write(const Found& found, const Made& made_with, const JsonOf& json_of,
             const TableOf& table_of) const {
    write_text(output, json ? settings.with_options(json_of(found, model), made_with) : table_of(found));
  }
};

}  // namespace mh::cli
