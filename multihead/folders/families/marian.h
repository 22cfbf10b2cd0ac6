// Writes the folder of an encoder-decoder. If Hugging Face's MarianMTModel can express the model, the
// folder is one that it opens ("marian"), else it is in our own format ("multihead"). The families of these
// names read it (families/family.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/family.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"

namespace mh {

/// Returns "marian" when MarianMTModel can express the model, else "multihead".
std::string_view natural_model_type(const EncoderDecoderConfig& config);

/// Which embeddings are one matrix; the comments name the fields of config.json.
struct Tying {
  bool source_and_target = true;  // share_encoder_decoder_embeddings
  bool target_and_output = true;  // tie_word_embeddings

  bool all() const { return source_and_target && target_and_output; }
};

/// Returns the text of config.json. files: the files that must stand beside it.
std::string write_encoder_decoder_config(const TranslatorShape& shape, std::string_view model_type,
                                         const Tying& tying, const std::vector<std::string>& files);
/// Reads such a text of our own format, model_type "multihead". Throws FormatError, which begins with `name`.
EncoderDecoderConfig read_encoder_decoder_config(std::string_view json, std::string_view name);

/// Returns which embeddings of a model are one matrix.
Tying tying_of(const EncoderDecoder& model);
/// Returns the bytes of model.safetensors, in float32.
std::string write_encoder_decoder_parameters(const EncoderDecoder& model, std::string_view model_type);
/// Returns a model of this shape with the weights of files in our own format ("multihead"). Throws
/// FormatError.
std::unique_ptr<EncoderDecoder> read_encoder_decoder_parameters(const TensorFiles& files,
                                                                const EncoderDecoderConfig& config);

/// Returns where a folder of this type has a parameter of an encoder-decoder. REQUIRES: the parameter
/// exists.
TensorPlace encoder_decoder_place(std::string_view model_type, std::string_view parameter,
                                  const Tying& tying);

/// Family::write of both. Throws UsageError when the model that was read is no encoder-decoder.
FolderContents encoder_decoder_contents(const SavedModel& saved, const SaveOptions& options);

/// Whether a tensor of MarianMTModel's files is no parameter: it repeats the shared embedding under the name of one of its
/// users, or holds the sinusoids. Adds to `differences` when its numbers are others.
bool is_no_parameter(const std::string& tensor, const TensorFiles& files, const Model& model,
                     const Tying& tying, const EncoderDecoderConfig& config, Differences& differences);

}  // namespace mh
