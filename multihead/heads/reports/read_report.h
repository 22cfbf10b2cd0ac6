// A report of `multihead heads VERB --json`, read again. It shows nlohmann's type, so only the sources of this room include it.
#pragma once

#include <string_view>

#include "multihead/io/strict_json.h"

namespace mh {

/// The members of a report of this verb. `file` is what messages call it. Throws FormatError, `file` first, on what is no such report, on
/// one of another verb and of another schema.
nlohmann::json read_report(std::string_view report, std::string_view verb, std::string_view file);

}  // namespace mh
