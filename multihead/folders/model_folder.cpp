#include "multihead/folders/model_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/checkpoint_names.h"
#include "multihead/folders/families/family.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/folder_tokenizers.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/sentence_modules.h"
#include "multihead/folders/tokenizer_files.h"
#include "multihead/folders/tokenizer_fit.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kWeightsIndex = "model.safetensors.index.json";
constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kTargetTokenizer = "target_tokenizer.json";
constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr const char* kSpecialTokensMap = "special_tokens_map.json";  // of older folders
constexpr const char* kChatTemplate = "chat_template.jinja";
constexpr const char* kGenerationConfig = "generation_config.json";

void require_folder(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) return;
  throw FileError(
      fmt::format("no model folder {}: {}; name a folder that multihead train or save_pretrained wrote",
                  path.string(), is_there(path) ? "it is a file" : "there is no such folder"));
}

void require_file(const fs::path& folder, const char* name) {
  std::error_code code;
  if (fs::exists(folder / name, code)) return;
  if (code) {
    throw FileError(
        fmt::format("cannot read {}: {}; let this user read it", (folder / name).string(), code.message()));
  }
  std::string remedy = "copy the whole folder again, or name another";
  if (is_there(checkpoints_of(folder)))
    remedy = "the training there has made no checkpoint yet; let it go on, or name another folder";
  if (is_there(folder / "pytorch_model.bin")) {
    remedy = "its weights are a pickle, which multihead does not read: save it again with save_pretrained";
  }
  throw FileError(fmt::format("{} has no {}; {}", folder.string(), name, remedy));
}

// A model that may say nothing but its end would translate every sentence to an empty line.
void refuse_to_suppress_all(const std::vector<int32_t>& suppressed, const ModelFacts& facts,
                            const fs::path& file) {
  std::set<int32_t> never(suppressed.begin(), suppressed.end());
  for (const int32_t id : {facts.eos_id, facts.pad_id}) {
    if (id >= 0) never.insert(id);
  }
  if (never.size() < static_cast<size_t>(facts.vocabulary)) return;
  throw FormatError(
      fmt::format("{}: bad_words_ids and suppress_tokens forbid every word of the vocabulary; shorten them",
                  file.string()));
}

bool holds_model(const fs::path& path) {
  return is_there(path / kConfig) && (is_there(path / kWeights) || is_there(path / kWeightsIndex));
}

// The newest that has all a model needs; whether it is damaged shows when it is read.
std::optional<int64_t> newest_checkpoint(const fs::path& model) {
  const std::vector<int64_t> updates = checkpoint_updates(model);
  const auto newest = std::find_if(updates.rbegin(), updates.rend(),
                                   [&](int64_t update) { return holds_model(checkpoint_of(model, update)); });
  return newest == updates.rend() ? std::nullopt : std::optional(*newest);
}

// A folder that multihead may replace: files only, a model's among them.
bool is_model_folder(const fs::path& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    if (!entry.is_regular_file()) return false;
  }
  return is_there(path / kConfig) || is_there(path / kWeights);
}

// A model folder named `.` must not cost anybody their files.
void refuse_foreign_folder(const fs::path& path) {
  if (!is_there(path)) return;
  std::error_code code;
  const bool folder = fs::is_directory(path, code);
  if (folder && (fs::is_empty(path, code) || is_model_folder(path))) return;
  throw FileError(
      fmt::format("cannot write the model to {}: {}; choose a new name", path.string(),
                  folder ? "the folder exists and holds something else" : "a file of that name exists"));
}

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

}  // namespace

std::string ModelFolder::remark() const {
  if (!not_read.empty()) {
    return fmt::format("{}: {} are not read; they belong to a head that this library does not have",
                       path.string(), fmt::join(not_read, ", "));
  }
  if (!checkpoint) return "";
  return fmt::format("{} has no finished model yet; taking the newest checkpoint of its training, {}",
                     path.parent_path().parent_path().string(), path.string());
}

LanguageModel& ModelFolder::language_model() const {
  if (auto* found = dynamic_cast<LanguageModel*>(model.get())) return *found;
  throw UsageError(
      fmt::format("{} holds a {} model, which predicts no next token; name a translator or a causal model",
                  path.string(), model_type));
}

LanguageModel& ModelFolder::causal_model() const {
  auto* const found = dynamic_cast<LanguageModel*>(model.get());
  if (found != nullptr && found->facts().source_vocabulary == 0) return *found;
  throw UsageError(
      fmt::format("{} holds a {} model, which {} a text instead of continuing it; name a causal model",
                  path.string(), model_type, found != nullptr ? "translates" : "reads"));
}

EncoderDecoder& ModelFolder::translator() const {
  if (auto* found = dynamic_cast<EncoderDecoder*>(model.get())) return *found;
  throw UsageError(fmt::format("{} holds a {} model, which does not translate; name an encoder-decoder",
                               path.string(), model_type));
}

const Tokenizer& ModelFolder::source_tokens() const {
  if (!tokenizer) {
    if (is_gguf(path)) throw_no_gguf_tokenizer(path);
    const bool translates = dynamic_cast<const EncoderDecoder*>(model.get()) != nullptr;
    throw FileError(fmt::format("{} has no tokenizer.json{}; put the model's tokenizer there", path.string(),
                                translates ? " (OPUS: source.spm)" : ""));
  }
  return *tokenizer;
}

const Tokenizer& ModelFolder::target_tokens() const {
  if (target_tokenizer) return *target_tokenizer;
  const ModelFacts facts = language_model().facts();
  if (tokenizer && facts.source_vocabulary > 0 && facts.source_vocabulary != facts.vocabulary) {
    throw FileError(
        fmt::format("{} has no target_tokenizer.json, though its target has a vocabulary of its own; put the "
                    "target's tokenizer there",
                    path.string()));
  }
  return source_tokens();
}

ModelFolder load_model_folder(const fs::path& given) {
  if (is_gguf(given)) return load_gguf(given);
  const fs::path asked = transformer_folder(given);
  require_folder(asked);
  ModelFolder folder;
  if (!holds_model(asked)) folder.checkpoint = newest_checkpoint(asked);
  folder.path = folder.checkpoint ? checkpoint_of(asked, *folder.checkpoint) : asked;
  const fs::path& path = folder.path;
  require_file(path, kConfig);
  const FolderPlan plan = read_plan(read_regular_file(path / kConfig), (path / kConfig).string());
  if (!is_there(path / kWeightsIndex)) require_file(path, kWeights);
  for (const std::string& name : plan.files) require_file(path, name.c_str());
  folder.model_type = plan.model_type;

  // The small files first: their errors come at once. What a model must say of itself it says without
  // weights.
  const TensorFiles files = TensorFiles::open(path);
  folder.model = make_model(files, plan);
  // Meanwhile another thread reads the weights, which nothing below asks for.
  auto weights = std::async([&] { return read_parameters(files, plan, *folder.model); });
  std::optional<SpecialTokens> special;
  if (is_there(path / kTokenizerConfig)) {
    const std::string config = read_regular_file(path / kTokenizerConfig);
    special = read_tokenizer_config(config, (path / kTokenizerConfig).string());
    folder.chat_template = read_chat_template(config, (path / kTokenizerConfig).string());
    folder.mask_token = special->mask;
  }
  if (const fs::path map = path / kSpecialTokensMap; folder.mask_token.empty() && is_there(map))
    folder.mask_token = read_tokenizer_config(read_regular_file(map), map.string()).mask;
  if (is_there(path / kChatTemplate)) folder.chat_template = read_regular_file(path / kChatTemplate);
  FolderTokenizers tokenizers = read_folder_tokenizers(path);
  folder.tokenizer = std::move(tokenizers.source);
  folder.target_tokenizer = std::move(tokenizers.target);
  const ModelFacts facts = folder.model->facts();
  if (folder.tokenizer)
    check_tokenizer(*folder.tokenizer, tokenizers.source_file, facts.vocabulary_read(), facts, special);
  if (facts.vocabulary > 0) {
    if (folder.target_tokenizer)
      check_tokenizer(*folder.target_tokenizer, tokenizers.target_file, facts.vocabulary, facts, special);
    // Before generation_config.json there was, config.json said such things.
    const fs::path generation = path / (is_there(path / kGenerationConfig) ? kGenerationConfig : kConfig);
    const std::string json = read_regular_file(generation);
    folder.suppressed = read_suppressed_tokens(json, generation.string(), facts.vocabulary);
    refuse_to_suppress_all(folder.suppressed, facts, generation);
    folder.end_tokens = read_end_tokens(json, generation.string(), facts.vocabulary);
  }
  folder.not_read = weights.get();
  return folder;
}

void write_model_files(FolderWriter& folder, const EncoderDecoder& model, const SaveOptions& options) {
  const EncoderDecoderConfig& config = model.config();
  refuse_to_save_mismatch(options.tokenizer, config.vocabulary_size, model.facts(), "source");
  refuse_to_save_mismatch(options.target_tokenizer, config.target_vocabulary(), model.facts(), "target");

  const std::string_view type = natural_model_type(config);
  std::map<std::string, std::string> files = options.extra_files;
  files[kWeights] = write_encoder_decoder_parameters(model, type);
  files[kGenerationConfig] = write_generation_config(config, options.beam_size);
  if (options.tokenizer != nullptr) {
    const auto of_tokenizer = options.tokenizer->files(kTokenizer);
    if (of_tokenizer.contains(kTokenizer))
      files[kTokenizerConfig] = write_tokenizer_config(*options.tokenizer, config);
    files.insert(of_tokenizer.begin(), of_tokenizer.end());
  }
  if (options.target_tokenizer != nullptr) files.merge(options.target_tokenizer->files(kTargetTokenizer));
  std::vector<std::string> own_files;
  for (const auto& [name, bytes] : files) {
    if (!options.extra_files.contains(name)) own_files.push_back(name);
  }
  files[kConfig] = write_encoder_decoder_config(config, type, tying_of(model), own_files);
  for (const auto& [name, bytes] : files) folder.add(name, bytes);
}

void save_model_folder(const fs::path& path, const EncoderDecoder& model, const SaveOptions& options) {
  refuse_foreign_folder(path);
  FolderWriter folder(path, options.stop);
  write_model_files(folder, model, options);
  folder.commit();
}

}  // namespace mh
