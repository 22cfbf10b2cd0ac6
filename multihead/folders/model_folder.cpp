#include "multihead/folders/model_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/platform.h"
#include "multihead/folders/checkpoint_names.h"
#include "multihead/folders/family.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/generation_config.h"
#include "multihead/folders/generation_keys.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/language_codes.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/sentence_modules.h"
#include "multihead/folders/shipped_folder.h"
#include "multihead/folders/tokenizer_files.h"
#include "multihead/folders/tokenizer_fit.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

void require_folder(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) return;
  throw FileError(
      fmt::format("no model folder {}: {}; name a folder that multihead train or save_pretrained wrote",
                  path.string(), is_there(path) ? "it is a file" : "there is no such folder"),
      is_there(path) ? ENOTDIR : ENOENT);
}

void require_file(const fs::path& folder, const char* name) {
  std::error_code code;
  if (fs::exists(folder / name, code)) return;
  if (code) {
    throw FileError(
        fmt::format("cannot read {}: {}; let this user read it", (folder / name).string(), code.message()),
        code.value());
  }
  std::string remedy = "copy the whole folder again, or name another";
  if (is_there(checkpoints_of(folder)))
    remedy = "the training there has made no checkpoint yet; let it go on, or name another folder";
  if (is_there(folder / kAdapterConfigFile))
    remedy = "there is an adapter alone: put config.json and model.safetensors of its base model beside it";
  if (is_there(folder / "pytorch_model.bin")) {
    remedy = "its weights are a pickle, which multihead does not read: save it again with save_pretrained";
  }
  throw FileError(fmt::format("{} has no {}; {}", folder.string(), name, remedy), ENOENT);
}

[[noreturn]] void throw_no_tokenizer(const fs::path& path, bool maybe_opus) {
  if (is_gguf(path))
    throw FileError(fmt::format("{} has no tokenizer; get a file that has one", path.string()), ENOENT);
  if (constexpr const char* kPieces = "sentencepiece.bpe.model"; is_there(path / kPieces)) {
    throw FileError(
        fmt::format("{} has {} and no tokenizer.json, which save_pretrained of transformers 5 writes for "
                    "mBART and NLLB; save the tokenizer there",
                    path.string(), kPieces),
        ENOENT);
  }
  throw FileError(fmt::format("{} has no tokenizer.json{}; put the model's tokenizer there", path.string(),
                              maybe_opus ? " (OPUS: source.spm)" : ""),
                  ENOENT);
}

void refuse_classifier(const ModelFolder& folder) {
  if (!folder.labels || folder.model->predicts()) return;
  throw UsageError(
      fmt::format("{} holds a {} model, which predicts no next token but gives labels (multihead classify); "
                  "name a translator or a causal model",
                  folder.path.string(), folder.model_type));
}

bool holds_model(const fs::path& path) {
  return is_there(path / kConfigFile) &&
         (is_there(path / kWeightsFile) || is_there(path / kWeightsIndexFile));
}

// The newest that has all a model needs; whether it is damaged shows when it is read.
std::optional<int64_t> newest_checkpoint(const fs::path& model) {
  const std::vector<int64_t> updates = checkpoint_updates(model);
  const auto newest = std::find_if(updates.rbegin(), updates.rend(),
                                   [&](int64_t update) { return holds_model(checkpoint_of(model, update)); });
  return newest == updates.rend() ? std::nullopt : std::optional(*newest);
}

}  // namespace

std::string ModelFolder::remark() const {
  std::vector<std::string> parts;
  const fs::path asked = checkpoint ? path.parent_path().parent_path() : path;
  if (asked == kShippedName && !shipped)
    parts.push_back(fmt::format("{0} is the folder here, not the translator {0} that comes with multihead",
                                kShippedName));
  if (!not_read.empty()) {
    parts.push_back(fmt::format("{}: {} are not read; they belong to a head that this library does not have",
                                path.string(), fmt::join(not_read, ", ")));
  }
  if (checkpoint) {
    parts.push_back(
        fmt::format("{} has no finished model yet; taking the newest checkpoint of its training, {}",
                    asked.string(), path.string()));
  }
  parts.insert(parts.end(), remarks.begin(), remarks.end());
  return fmt::format("{}", fmt::join(parts, "; "));
}

LanguageModel& ModelFolder::language_model() const {
  refuse_classifier(*this);
  if (auto* found = dynamic_cast<LanguageModel*>(model.get()); found != nullptr && found->predicts())
    return *found;
  throw UsageError(
      fmt::format("{} holds a {} model, which predicts no next token; name a translator or a causal model",
                  path.string(), model_type));
}

LanguageModel& ModelFolder::causal_model() const {
  refuse_classifier(*this);
  const ModelKind kind = model->kind();
  if (kind == ModelKind::kCausal && model->predicts()) return language_model();
  throw UsageError(
      fmt::format("{} holds a {} model, which {} a text instead of continuing it; name a causal model",
                  path.string(), model_type, kind == ModelKind::kTranslator ? "translates" : "reads"));
}

EncoderDecoder& ModelFolder::translator() const {
  if (auto* found = dynamic_cast<EncoderDecoder*>(model.get())) {
    refuse_classifier(*this);
    return *found;
  }
  throw UsageError(fmt::format("{} holds a {} model, which does not translate; name an encoder-decoder",
                               path.string(), model_type));
}

const Tokenizer& ModelFolder::source_tokens() const {
  if (!tokenizer) throw_no_tokenizer(path, model->kind() == ModelKind::kTranslator);
  return *tokenizer;
}

const Tokenizer& ModelFolder::target_tokens() const {
  if (target_tokenizer) return *target_tokenizer;
  const ModelFacts facts = language_model().facts();
  if (tokenizer && facts.source_vocabulary > 0 && facts.source_vocabulary != facts.vocabulary) {
    throw FileError(
        fmt::format("{} has no target_tokenizer.json, though its target has a vocabulary of its own; put the "
                    "target's tokenizer there",
                    path.string()),
        ENOENT);
  }
  return source_tokens();
}

ModelFolder load_model_folder(std::shared_ptr<const FolderSource> source) {
  const FolderSource& from = *source;
  ModelFolder folder;
  const FolderPlan plan = from.plan();
  folder.model_type = plan.model_type;
  folder.remarks = plan.remarks;
  for (const std::string& name : plan.files) {
    if (!from.has(name))
      throw FileError(fmt::format("there is no {}; copy the whole folder again", from.path_of(name)), ENOENT);
  }

  // The small files first: their errors come at once. What a model must say of itself it says without
  // weights.
  const TensorFiles files = from.tensors();
  folder.remarks.insert(folder.remarks.end(), files.remarks().begin(), files.remarks().end());
  folder.model = make_model(files, plan);
  if (folder.model->label_head() != nullptr) folder.labels = plan.labels;
  // Meanwhile another thread reads the weights, which nothing below asks for.
  auto weights = std::async(has_threads() ? std::launch::async : std::launch::deferred,
                            [&] { return read_parameters(files, plan, *folder.model); });
  std::optional<SpecialTokens> special;
  if (from.has(kTokenizerConfigFile)) {
    const std::string config = from.read(kTokenizerConfigFile);
    special = read_tokenizer_config(config, from.path_of(kTokenizerConfigFile));
    folder.chat_template = read_chat_template(config, from.path_of(kTokenizerConfigFile));
    folder.mask_token = special->mask;
    folder.special_tokens = read_named_tokens(config, from.path_of(kTokenizerConfigFile));
  }
  if (from.has(kSpecialTokensFile)) {
    const std::string json = from.read(kSpecialTokensFile), path = from.path_of(kSpecialTokensFile);
    if (folder.mask_token.empty()) folder.mask_token = read_tokenizer_config(json, path).mask;
    folder.special_tokens.merge(read_named_tokens(json, path));
  }
  if (from.has(kChatTemplateFile)) folder.chat_template = from.read(kChatTemplateFile);
  FolderTokenizers tokenizers = from.tokenizers();
  folder.remarks.insert(folder.remarks.end(), tokenizers.remarks.begin(), tokenizers.remarks.end());
  folder.tokenizer = std::move(tokenizers.source);
  folder.target_tokenizer = std::move(tokenizers.target);
  const ModelFacts facts = folder.model->facts();
  if (folder.tokenizer)
    check_tokenizer(*folder.tokenizer, tokenizers.source_file, facts.vocabulary_read(), facts, special);
  if (facts.vocabulary > 0) {
    if (folder.target_tokenizer)
      check_tokenizer(*folder.target_tokenizer, tokenizers.target_file, facts.vocabulary, facts, special);
    // Before generation_config.json there was, config.json said such things.
    const char* const generation = from.has(kGenerationConfigFile) ? kGenerationConfigFile : kConfigFile;
    const std::string json = from.read(generation), path = from.path_of(generation);
    folder.generation = read_generation_config(json, path, facts);
    folder.generation_remark =
        generation_remark(from.has(kGenerationConfigFile) ? json : generation_part(json, path), path, facts);
  }
  if (folder.model->kind() == ModelKind::kTranslator)
    folder.task_prefixes = read_task_prefixes(from.read(kConfigFile), from.path_of(kConfigFile));
  if (tokenizers.languages) {
    complete_codes(folder, *tokenizers.languages);
    folder.languages = std::make_shared<const LanguageCodes>(std::move(*tokenizers.languages));
  }
  folder.not_read = weights.get();
  folder.source = std::move(source);
  return folder;
}

ModelFolder load_model_folder(const fs::path& given) {
  const bool shipped = is_shipped(given);
  if (shipped || is_gguf(given)) {
    ModelFolder folder = load_model_folder(shipped ? open_shipped_folder() : open_gguf_folder(given));
    folder.path = given;
    folder.shipped = shipped;
    return folder;
  }
  const fs::path asked = transformer_folder(given);
  require_folder(asked);
  // A folder may be replaced while it is read, by a training that goes on: then all of it is read again.
  constexpr int kMostTimes = 5;
  for (int times = 1;; ++times) {
    std::optional<int64_t> checkpoint;
    if (!holds_model(asked)) checkpoint = newest_checkpoint(asked);
    const fs::path path = checkpoint ? checkpoint_of(asked, *checkpoint) : asked;
    require_file(path, kConfigFile);
    if (!is_there(path / kWeightsIndexFile)) require_file(path, kWeightsFile);
    const auto source = std::make_shared<const DirectoryFolder>(path);
    ModelFolder folder = load_model_folder(source);
    const std::string changed = source->changed();
    if (changed.empty()) {
      folder.path = path;
      folder.checkpoint = checkpoint;
      return folder;
    }
    if (times == kMostTimes) {
      throw FileError(fmt::format("{} changed while the model was read; wait until its writer has ended",
                                  source->path_of(changed)));
    }
  }
}

Tokenizer load_tokenizer(const fs::path& path, const std::function<void(const std::string&)>& remark) {
  const FolderTokenizers found = is_shipped(path) ? open_shipped_folder()->tokenizers()
                                 : is_gguf(path)  ? open_gguf_folder(path)->tokenizers()
                                                  : DirectoryFolder(transformer_folder(path)).tokenizers();
  if (!found.source) throw_no_tokenizer(path, true);
  for (const std::string& line : found.remarks) {
    if (remark) remark(line);
  }
  return *found.source;
}

}  // namespace mh
