// model.safetensors: the numbers of a Transformer.
#pragma once

#include <memory>
#include <string>

#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/marian.h"

namespace mh {

/// The bytes of model.safetensors, float32.
std::string write_weights(const EncoderDecoder& model, ModelType type, Tying tying);

/// A model of this shape with the file's numbers. Throws FormatError that starts with `name` and lists all
/// differences at once: "missing: ...; shape of X: expected [..], got [..]; type of X: ...; not used: ...;
/// not finite: ...". The memory it asks for is a small multiple of the file, whatever `config` claims.
std::unique_ptr<EncoderDecoder> read_weights(const SafetensorsFile& file, const std::string& name,
                                             const EncoderDecoderConfig& config, ModelType type, Tying tying);

/// A lower bound of the numbers in a model of this shape, in double: a configuration may claim more than any
/// integer holds.
double least_parameters(const EncoderDecoderConfig& config);

}  // namespace mh
