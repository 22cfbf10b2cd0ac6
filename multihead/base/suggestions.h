// "did you mean ...?" for a mistyped verb, flag, key or setting.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// The names that `given` was most likely meant to be, three at most: a few letters differ, it begins the name or goes on
/// behind it, or its parts between dashes or underscores shorten those of the name (train-src: train-source). Dashes in front
/// do not count. Empty when nothing is near.
std::vector<std::string> suggestions(std::string_view given, const std::vector<std::string>& names);

/// "did you mean --beam-size?"; empty when there are no suggestions.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& names);

}  // namespace mh
