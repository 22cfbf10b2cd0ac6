// The settings of a training, kept beside its checkpoints: going on needs none of them again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "multihead/train/translator/translator_settings.h"

namespace mh {

/// The settings that the training in this model folder was last started with, its `model` being that folder;
/// nothing when none are kept there. To go on with a change:
///   TranslatorSettings settings = kept_settings("en-de").value();
///   settings.updates = 9000;
///   train_translator(settings);
/// Throws FileError or FormatError on a file that is damaged, with the remedy.
std::optional<TranslatorSettings> kept_settings(const std::filesystem::path& model);

/// init_from as it is kept: as an absolute path, unless it is the translator that comes with the library. Empty stays empty.
std::string settled_folder(const std::string& init_from);

/// Keeps them in the folder settings.model, in place of those before; paths as absolute ones. Throws FileError.
void keep_settings(const TranslatorSettings& settings);

}  // namespace mh
