// config.json of a model folder, as Hugging Face's MarianConfig reads and writes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/encoder_decoder_config.h"
#include "multihead/models/marian.h"

namespace mh {

struct ConfigFile {
  ModelType type = ModelType::kMarian;
  EncoderDecoderConfig config;
  Tying tying;                     // of the tensors in the file
  std::vector<std::string> files;  // that must stand beside it; empty when transformers wrote it
};

/// Throws FormatError that starts with `name` and lists all that is wrong: another architecture, sizes that
/// are missing, out of range or do not fit together.
ConfigFile read_config_file(std::string_view json, std::string_view name);

/// The text of config.json.
std::string write_config_file(const ConfigFile& file);

}  // namespace mh
