// A small model folder with a tokenizer, for tests that save, damage and load it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/text/train_tokenizer.h"
#include "tests/models/small_batch.h"

namespace mh::test {

inline const std::vector<std::string> kLines{"the small dog sees a cat", "a cat runs",
                                             "ein kleiner Hund sieht eine Katze", "die Katze läuft"};

inline Tokenizer small_tokenizer(int32_t size = 53) {
  return train_bpe(kLines, {.vocabulary_size = size, .least_pair_count = 1});
}

/// Odd sizes; special tokens as learned tokenizers have them.
inline TranslatorShape folder_shape(int32_t vocabulary) {
  TranslatorShape shape;
  shape.vocabulary_size = vocabulary;
  shape.d_model = 15;
  shape.encoder_layers = 1;
  shape.decoder_layers = 2;
  shape.encoder_heads = 3;
  shape.decoder_heads = 5;
  shape.encoder_ff = 19;
  shape.decoder_ff = 23;
  shape.activation = Activation::kSwish;
  shape.dropout = {.residual = 0.25f, .weights = 0.125f, .activation = 0.0625f};
  shape.max_positions = 29;
  shape.pad_id = shape.decoder_start_id = kPadId;
  shape.eos_id = kEndId;
  return shape;
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
