// What the folder of an encoder-decoder holds: every file is made anew.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_contents.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/generation_config.h"
#include "multihead/folders/saved_config.h"
#include "multihead/folders/tokenizer_files.h"
#include "multihead/folders/tokenizer_fit.h"

namespace mh {
namespace {

void refuse_to_save_mismatch(const Tokenizer* tokenizer, int32_t vocabulary, const ModelFacts& facts,
                             const char* whose) {
  if (tokenizer == nullptr) return;
  // Its own names for these ids: what tokenizer_config.json will say.
  const auto named = [&](int32_t id) {
    return id < tokenizer->size() ? tokenizer->token_of(id) : std::string();
  };
  auto mismatches =
      tokenizer_mismatches(*tokenizer, vocabulary, facts, named(facts.eos_id), named(facts.pad_id));
  if (std::max(facts.eos_id, facts.pad_id) >= tokenizer->size()) {
    mismatches.push_back(
        fmt::format("it has no tokens with the ids {} (end) and {} (pad)", facts.eos_id, facts.pad_id));
  }
  if (mismatches.empty()) return;
  throw UsageError(
      fmt::format("the {} tokenizer does not match the model: {}", whose, fmt::join(mismatches, "; ")));
}

struct Tokenizers {
  const Tokenizer* source = nullptr;
  const Tokenizer* target = nullptr;
};

Tokenizers tokenizers_of(const SavedModel& saved, const SaveOptions& options) {
  if (saved.folder == nullptr) return {options.tokenizer, options.target_tokenizer};
  const auto there = [](const std::optional<Tokenizer>& tokenizer) {
    return tokenizer ? &*tokenizer : nullptr;
  };
  return {there(saved.folder->tokenizer), there(saved.folder->target_tokenizer)};
}

/// How a text is searched for: as the folder says that was read.
std::string generation_config_of(const EncoderDecoder& model, const ModelFolder* read) {
  if (read == nullptr || read->source == nullptr)
    return write_generation_config(model.config(), {.early_stopping = EarlyStopping::kTrue});
  if (read->source->has(kGenerationConfigFile)) return saved_generation_config(*read, model);
  return write_generation_config(model.config(), read->generation);
}

std::map<std::string, std::string> small_files_of(const EncoderDecoder& model, const Tokenizers& tokenizers,
                                                  const ModelFolder* read) {
  const ModelFacts facts = model.facts();
  refuse_to_save_mismatch(tokenizers.source, facts.source_vocabulary, facts, "source");
  refuse_to_save_mismatch(tokenizers.target, facts.vocabulary, facts, "target");
  std::map<std::string, std::string> files;
  files[kGenerationConfigFile] = generation_config_of(model, read);
  if (tokenizers.source != nullptr) {
    const auto of_tokenizer = tokenizers.source->files(kTokenizerFile);
    if (of_tokenizer.contains(kTokenizerFile))
      files[kTokenizerConfigFile] = write_tokenizer_config(*tokenizers.source, model.config());
    files.insert(of_tokenizer.begin(), of_tokenizer.end());
  }
  if (tokenizers.target != nullptr) files.merge(tokenizers.target->files(kTargetTokenizerFile));
  return files;
}

}  // namespace

FolderContents encoder_decoder_contents(const SavedModel& saved, const SaveOptions& options) {
  const EncoderDecoder& model =
      saved.folder != nullptr ? saved.folder->translator() : static_cast<const EncoderDecoder&>(saved.model);
  const std::string type(natural_model_type(model.config()));
  FolderContents contents;
  if (type != "marian") {
    contents.format = {.kind = SavedFormat::Kind::kOwn,
                       .why = "MarianMTModel has the same heads in all layers, of d_model / heads columns"};
  }
  const Tying tying = tying_of(model);
  contents.place = [type, tying](std::string_view parameter) {
    return encoder_decoder_place(type, parameter, tying);
  };
  contents.small_files = [&model, tokenizers = tokenizers_of(saved, options), read = saved.folder] {
    return small_files_of(model, tokenizers, read);
  };
  contents.config = [&model, type, tying, numbers = options.type](const std::vector<std::string>& own_files) {
    return with_number_type(write_encoder_decoder_config(shape_of(model.config()), type, tying, own_files),
                            numbers);
  };
  return contents;
}

}  // namespace mh
