// What messages call a configuration's fields: by themselves as our structs do, or, for somebody who reads a
// config.json, as that file does.
#pragma once

#include <string_view>

namespace mh {

struct ConfigNames {
  std::string_view vocabulary = "vocabulary_size";
  std::string_view target_vocabulary = "target_vocabulary_size";
  std::string_view d_model = "d_model";
  std::string_view encoder_heads = "encoder_heads", decoder_heads = "decoder_heads";
  std::string_view encoder_ff = "encoder_ff", decoder_ff = "decoder_ff";
  std::string_view max_positions = "max_positions";
  std::string_view pad_id = "pad_id", eos_id = "eos_id", start_id = "start_id";
};

}  // namespace mh
