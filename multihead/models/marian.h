// How a Transformer's parameters are called, and how they lie, in model.safetensors.
//
// Marian (Hugging Face's MarianMTModel) keeps a projection as [out, in] and a bias as [out]; here a
// projection is [in, out], so that y = x w, and a bias is a matrix of one row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/encoder_decoder_config.h"

namespace mh {

/// What config.json calls the architecture.
enum class ModelType {
  kMarian,     // a post-norm encoder-decoder, for Hugging Face's MarianMTModel
  kMultihead,  // what Marian has no words for: our own names, matrices as they are
};
const char* model_type_name(ModelType type);

/// Marian whenever it can express the model.
ModelType natural_model_type(const EncoderDecoderConfig& config);

/// Where a parameter's numbers are in the file.
struct TensorPlace {
  enum class Layout { kMatrix, kTransposed, kVector };

  std::vector<std::string> names;  // the first that the file has counts; the very first is what is written
  Layout layout = Layout::kMatrix;
  bool may_be_missing = false;  // then it is zero
};

/// Which embeddings are one matrix, as config.json says it.
struct Tying {
  bool source_and_target = true;  // share_encoder_decoder_embeddings
  bool target_and_output = true;  // tie_word_embeddings

  bool all() const { return source_and_target && target_and_output; }
};

/// The place of the parameter that EncoderDecoder::visit calls `parameter`. REQUIRES: such a name.
TensorPlace tensor_place(ModelType type, std::string_view parameter, Tying tying);

/// Tensors that Marian files may hold besides: they repeat what another tensor or a formula says.
std::vector<std::string> repeated_tensors(ModelType type);

}  // namespace mh
