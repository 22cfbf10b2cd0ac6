// A translator with random weights: three heads an attention, a layer a stack.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/text/train_tokenizer.h"

namespace mh {

/// Its tokenizer is learned from these lines.
inline ModelFolder small_translator(const std::vector<std::string>& lines, int layers = 1) {
  ModelFolder folder;
  folder.tokenizer = train_bpe(lines, {.vocabulary_size = 90});
  TranslatorShape shape;
  shape.vocabulary_size = folder.tokenizer->size();
  shape.d_model = 6;
  shape.encoder_layers = shape.decoder_layers = layers;
  shape.encoder_heads = shape.decoder_heads = 3;
  shape.encoder_ff = shape.decoder_ff = 7;
  shape.max_positions = 61;
  shape.eos_id = kEndId;
  shape.pad_id = shape.decoder_start_id = kPadId;
  folder.model = std::make_unique<EncoderDecoder>(shape.config());
  folder.translator().initialise(3);
  return folder;
}

}  // namespace mh
