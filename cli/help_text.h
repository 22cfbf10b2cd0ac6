// What --help prints, in 80 columns: groups of flags, the common ones; with --help-all every flag.
#pragma once

#include <string>

#include "cli/verb.h"

namespace mh::cli {

/// The group of the flags that every verb takes.
inline constexpr const char* kEveryVerb = "Every verb";

std::string help_text(const Verb& verb, bool all);
/// "multihead 0.9 (kernels: AVX2)", and which kernels run on this machine.
std::string version_line();

}  // namespace mh::cli
