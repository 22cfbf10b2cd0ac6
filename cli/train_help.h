// What --help says of each flag of multihead train.
#pragma once

#include <string>
#include <string_view>

namespace mh::cli {

struct TrainHelp {
  const char* group;
  std::string text;
};
/// REQUIRES: a setting of TranslatorSettings.
const TrainHelp& train_help(std::string_view setting);

}  // namespace mh::cli
