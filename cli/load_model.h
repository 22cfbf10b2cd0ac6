// A model folder, for the verbs that use one.
#pragma once

#include <string>
#include <string_view>

#include "multihead/base/precision.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/scored_model.h"
#include "multihead/folders/sentence_model.h"

namespace mh::cli {

struct Flag;
class Verb;

/// A model that a verb runs. A verb that trains a model, converts it or shows its weights has the path alone.
struct ModelFlags {
  std::string path = {};
  PrecisionChoice precision = {};  // docs/precision.md
};

/// The folder of a model that the verb runs, as add_model() of a path adds it, and --precision. Returns the folder's.
Flag* add_model(Verb& verb, ModelFlags& model, const std::string& help = "The model folder");

/// load_model_folder(), with a remark on standard error when the folder stands for a checkpoint of its
/// training.
ModelFolder load_model(const std::string& path);
ModelFolder load_model(const ModelFlags& model);

/// load_scored_model(), with remarks likewise.
ScoredModel load_scored(const ModelFlags& model);

/// load_sentence_model(). Its remarks are for who uses the vectors.
SentenceModel load_sentences(const ModelFlags& model);

/// load_model(), for a verb that takes translators only. Throws UsageError on another model; `instead` tells what to
/// do with that one.
ModelFolder load_translator(const std::string& path, std::string_view verb, std::string_view instead);

/// Likewise for a verb that takes causal models, too.
ModelFolder load_translator_or_causal(const std::string& path, std::string_view verb,
                                      std::string_view instead);

/// Refuses a --out that exists, so that no model is lost, and one that could not be made. Throws UsageError or FileError.
void check_new_folder(const std::string& out);

}  // namespace mh::cli
