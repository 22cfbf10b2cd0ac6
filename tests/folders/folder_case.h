// A small model folder with a tokenizer, for tests that save, damage and load it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/text/train_tokenizer.h"
#include "tests/models/small_batch.h"

namespace mh::test {

inline const std::vector<std::string> kLines{"the small dog sees a cat", "a cat runs",
                                             "ein kleiner Hund sieht eine Katze", "die Katze läuft"};

inline Tokenizer small_tokenizer(int32_t size = 53) {
  return train_bpe(kLines, {.vocabulary_size = size, .least_pair_count = 1});
}

/// Odd sizes; special tokens as learned tokenizers have them.
inline EncoderDecoderConfig folder_config(int32_t vocabulary) {
  EncoderDecoderConfig config;
  config.vocabulary_size = vocabulary;
  config.d_model = 15;
  config.encoder_layers = 1;
  config.decoder_layers = 2;
  config.encoder_heads = 3;
  config.decoder_heads = 5;
  config.encoder_ff = 19;
  config.decoder_ff = 23;
  config.activation = Activation::kSwish;
  config.dropout = {.residual = 0.25f, .weights = 0.125f, .activation = 0.0625f};
  config.max_positions = 29;
  config.pad_id = config.decoder_start_id = kPadId;
  config.eos_id = kEndId;
  return config;
}

inline std::vector<std::vector<float>> values_of(EncoderDecoder& model) {
  std::vector<std::vector<float>> values;
  model.visit(
      [&](const std::string&, Parameter& parameter) { values.push_back(copy_of(parameter.value.view())); });
  return values;
}

/// Changes one key of a JSON file.
inline void edit_json(const std::filesystem::path& file, const std::function<void(nlohmann::json&)>& change) {
  auto document = nlohmann::json::parse(read_file(file));
  change(document);
  write_file_atomically(file, document.dump());
}

}  // namespace mh::test
