// Arguments that belong to no flag and have no place of their own: for which flag they were most likely meant.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mh::cli {

/// "v.en is one argument too many; did you mean -i v.en?" `strays`: all of them, in order; at least one.
std::string too_many_arguments(const CLI::App& verb, const std::vector<std::string>& strays);

}  // namespace mh::cli
