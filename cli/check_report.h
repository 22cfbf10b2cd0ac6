// What check_model() finds, for the terminal.
#pragma once

#include <string>

#include "multihead/check/check_model.h"

namespace mh::cli {

/// The largest relative differences by part of a site's name, and the verdict, in lines of at most 80 columns.
std::string check_table(const CheckReport& report);

}  // namespace mh::cli
