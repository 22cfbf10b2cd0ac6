// The flags of a verb of `heads` that come from its settings, and --options, which takes them from a report of that verb.
#pragma once

#include <string>

#include "cli/setting_flags.h"
#include "cli/verb.h"
#include "multihead/base/file.h"
#include "multihead/heads/reports/report_options.h"

namespace mh::cli {

template <class Settings>
class ReportFlags {
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
  std::string with_options(const std::string& report, const Settings& settings) const {
    return mh::with_options(report, name_, settings);
  }

 private:
  SettingFlags flags_;
  std::string name_, file_;
};

}  // namespace mh::cli
