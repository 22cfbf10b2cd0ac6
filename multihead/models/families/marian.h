// Writing the folder of an encoder-decoder: what Hugging Face's MarianMTModel opens, and our own form for
// what it has no words for. Reading it: the families marian and multihead (families/family.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/encoder_decoder.h"
#include "multihead/models/families/family.h"

namespace mh {

/// "marian" whenever MarianMTModel can express the model, else "multihead".
std::string_view natural_model_type(const EncoderDecoderConfig& config);

/// Which embeddings are one matrix, as config.json says it.
struct Tying {
  bool source_and_target = true;  // share_encoder_decoder_embeddings
  bool target_and_output = true;  // tie_word_embeddings

  bool all() const { return source_and_target && target_and_output; }
};

/// The text of config.json. files: those that must stand beside it.
std::string write_encoder_decoder_config(const EncoderDecoderConfig& config, std::string_view model_type,
                                         const Tying& tying, const std::vector<std::string>& files);

/// Which embeddings of a model are one matrix.
Tying tying_of(const EncoderDecoder& model);
/// The bytes of its model.safetensors, float32.
std::string write_encoder_decoder_weights(const EncoderDecoder& model, std::string_view model_type);
/// A model of this shape with the numbers of our own form of file ("multihead"). Throws FormatError.
std::unique_ptr<EncoderDecoder> read_encoder_decoder_weights(const WeightFiles& files,
                                                             const EncoderDecoderConfig& config);

/// The place of an encoder-decoder's parameter in a folder of this type. REQUIRES: such a name.
TensorPlace encoder_decoder_place(std::string_view model_type, std::string_view parameter,
                                  const Tying& tying);

}  // namespace mh
