// A translator with random weights: three heads an attention, a layer a stack.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/text/train_tokenizer.h"

namespace mh {

/// Its tokenizer is learned from these lines.
inline ModelFolder small_translator(const std::vector<std::string>& lines, int layers = 1) {
  ModelFolder folder;
  folder.tokenizer = train_bpe(lines, {.vocabulary_size = 90});
  EncoderDecoderConfig config;
  config.vocabulary_size = folder.tokenizer->size();
  config.d_model = 6;
  config.encoder_layers = config.decoder_layers = layers;
  config.encoder_heads = config.decoder_heads = 3;
  config.encoder_ff = config.decoder_ff = 7;
  config.max_positions = 61;
  config.eos_id = kEndId;
  config.pad_id = config.decoder_start_id = kPadId;
  folder.model = std::make_unique<EncoderDecoder>(config);
  folder.translator().initialise(3);
  return folder;
}

}  // namespace mh
