// What transformers is asked to compute, and the script that computes it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "multihead/check/check_texts.h"

namespace mh {

/// share/check/site_oracle.py: a Python program that is called with two files, the request and the answer.
std::string_view site_oracle();

/// The request, in JSON: the folder, or a GGUF file with the config.json that was made of its metadata, ids of texts, and the
/// modules of the family's class. Throws Error on a model that is neither.
std::string check_request(const ModelFolder& folder, const CheckTexts& texts, int threads);

/// Runs the script, which reads the first file and writes the second. Throws Error with what it could not do, in one line.
using AskOracle =
    std::function<void(const std::filesystem::path& request, const std::filesystem::path& answer)>;

}  // namespace mh
