// Checks before a training begins. Each throws UsageError (or FileError) with the remedy.
#pragma once

#include <filesystem>

#include "multihead/models/encoder_decoder_config.h"
#include "multihead/recipes/translator_settings.h"
#include "multihead/text/tokenizer.h"

namespace mh {

/// A folder with a model that no run here made is somebody's: it is not ours to overwrite.
void refuse_foreign_folder(const std::filesystem::path& folder);

/// With init_from the shape is that folder's, `config`; flags may repeat it but not change it. `given` is
/// what was asked for, without what a preset brings.
void refuse_other_shape(const TranslatorSettings& given, const EncoderDecoderConfig& config);

/// Refuses a tokenizer that does not fit the model of init_from: its ids would lie beyond the embeddings,
/// or mean other words.
void refuse_other_tokens(const Tokenizer& tokenizer, const EncoderDecoderConfig& config,
                         const TranslatorSettings& settings);

/// Refuses a model whose weights, gradients and moments alone exceed this machine's memory: the system
/// would kill this process, or another one, without a message.
void refuse_too_large(const EncoderDecoderConfig& config);

}  // namespace mh
