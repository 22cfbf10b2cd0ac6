// Checks before a training begins. Each throws UsageError (or FileError) with the remedy.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "multihead/distributed/process_group.h"
#include "multihead/folders/model_folder.h"
#include "multihead/models/encoder_decoder_config.h"
#include "multihead/models/translator_shape.h"
#include "multihead/text/tokenizer.h"
#include "multihead/train/training_state.h"
#include "multihead/train/translator/translator_settings.h"

namespace mh {

/// Refuses ranks that differ in what decides which numbers come out, and in how they talk to each other, on all of them.
void refuse_differing_ranks(ProcessGroup& group, const TranslatorSettings& settings);

/// Refuses a folder that has other files and no training run, since they are not ours. Throws also when
/// nothing can be written there, or there is no such folder and none can be made.
void refuse_foreign_folder(const std::filesystem::path& folder);

/// Refuses settings that differ from those that the run was started with, unless they may change; `clauses`
/// are further differences. Throws FormatError when the run's own settings differ from those of its
/// checkpoint.
void refuse_changes(const TranslatorSettings& settings, const TrainingState& saved,
                    std::vector<std::string> clauses);

/// Refuses settings of the shape that differ from `shape`, that of the model of init_from. `given` are the
/// settings that the user gave, without those of a preset.
void refuse_other_shape(const TranslatorSettings& given, const TranslatorShape& shape);

/// Refuses another tokenizer than the folder's where the format of its family keeps that.
void refuse_own_tokenizer(const ModelFolder& folder, const TranslatorSettings& settings);

/// Refuses a tokenizer that does not fit the model of init_from: its ids would lie beyond the embeddings,
/// or mean other words.
void refuse_other_tokens(const Tokenizer& tokenizer, const EncoderDecoderConfig& config,
                         const TranslatorSettings& settings);

/// Refuses a model whose weights, gradients and moments alone exceed this machine's memory: the system
/// would kill this process, or another one, without a message.
void refuse_too_large(const EncoderDecoderConfig& config);

}  // namespace mh
