// The end of a file's name says its format: a flag refuses names of formats that it does not write.
#pragma once

#include <string>

namespace mh::cli {

struct Flag;

/// Makes a flag refuse a file whose name has another ending than this one, or none. what: "an SVG picture".
void expect_ending(Flag* flag, const std::string& ending, const std::string& what);

/// Makes a flag that writes a folder refuse the names of files, such as x.npz. besides: a file that it writes
/// when the name ends so; empty: it writes folders only. what: all that it writes, "a folder of .npy files".
void expect_folder(Flag* flag, const std::string& what, const std::string& besides = "");

}  // namespace mh::cli
