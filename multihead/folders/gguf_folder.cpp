#include "multihead/folders/gguf_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/gguf_config.h"
#include "multihead/folders/gguf_tokenizer.h"
#include "multihead/folders/gguf_weights.h"
#include "multihead/io/gguf.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChatTemplateKey = "tokenizer.chat_template";

std::string tokenizer_config_of(const GgufFile& file, const Tokenizer& tokenizer, const std::string& config) {
  nlohmann::ordered_json document;
  document["tokenizer_class"] = "PreTrainedTokenizerFast";
  for (const auto& [key, name] : {std::pair{"tokenizer.ggml.bos_token_id", "bos_token"},
                                  {"tokenizer.ggml.eos_token_id", "eos_token"},
                                  {"tokenizer.ggml.unknown_token_id", "unk_token"},
                                  {"tokenizer.ggml.padding_token_id", "pad_token"}}) {
    const auto id = file.integer(key, 0, (1 << 24) - 1);  // whether it is a token is said of the tokenizer
    if (id && *id < tokenizer.size()) document[name] = tokenizer.token_of(static_cast<int32_t>(*id));
  }
  document["model_max_length"] = nlohmann::json::parse(config)["max_position_embeddings"];
  document["clean_up_tokenization_spaces"] = false;
  document["model_input_names"] = {"input_ids", "attention_mask"};
  if (const auto chat = file.text(kChatTemplateKey); chat && !chat->empty())
    document["chat_template"] = std::string(*chat);
  return document.dump(2) + "\n";
}

std::string generation_config_of(const std::string& config) {
  const auto from = nlohmann::json::parse(config);
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const char* name : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    if (from.contains(name) && !from[name].is_null()) document[name] = from[name];
  }
  return document.dump(2) + "\n";
}

/// A GGUF file as the folder of Hugging Face that says the same.
class GgufFolder final : public FolderSource {
 public:
  explicit GgufFolder(GgufFile file) : file_(std::move(file)), config_(gguf_config_json(file_)) {
    tokenizer_ = gguf_tokenizer(file_);
    files_[kConfigFile] = config_;
    files_[kGenerationConfigFile] = generation_config_of(config_);
    if (tokenizer_) files_[kTokenizerConfigFile] = tokenizer_config_of(file_, *tokenizer_, config_);
  }

  std::string path_of(std::string_view file) const override {
    return fmt::format("{}, as a {}", file_.name(), file);
  }
  bool has(std::string_view file) const override {
    return files_.contains(file) || (file == kTokenizerFile && tokenizer_);
  }
  std::string read(std::string_view file) const override {
    if (file == kTokenizerFile && tokenizer_) return tokenizer_->to_json();  // large, and seldom asked for
    const auto found = files_.find(file);
    if (found == files_.end())
      throw FileError(fmt::format("{} says nothing of a {}", file_.name(), file), ENOENT);
    return found->second;
  }
  SafetensorsFile open_tensors(std::string_view file) const override {
    throw FileError(fmt::format("{} has no {}; its tensors are in the file itself", file_.name(), file),
                    ENOENT);
  }
  std::vector<std::string> small_files() const override {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : files_) names.push_back(name);
    if (tokenizer_) names.emplace_back(kTokenizerFile);
    return names;
  }

  FolderPlan plan() const override {
    FolderPlan plan = FolderSource::plan();
    plan.place = gguf_place;
    plan.no_weight = [](const std::string& tensor, const TensorFiles&, const Model&, Differences&) {
      return tensor == "rope_freqs.weight";  // gguf_config_json() has read it
    };
    plan.description = "its metadata";
    plan.remedy = "get the file again";
    return plan;
  }
  TensorFiles tensors() const override { return gguf_weights(file_, gguf_heads(file_)); }
  FolderTokenizers tokenizers() const override {
    return {.source = tokenizer_,
            .target = std::nullopt,
            .source_file = fmt::format("the tokenizer of {}", file_.name()),
            .target_file = {}};
  }

 private:
  GgufFile file_;
  std::string config_;
  std::optional<Tokenizer> tokenizer_;
  std::map<std::string, std::string, std::less<>> files_;
};

}  // namespace

bool is_gguf(const fs::path& path) {
  return path.extension() == ".gguf";
}

std::shared_ptr<const FolderSource> open_gguf_folder(GgufFile file) {
  return std::make_shared<const GgufFolder>(std::move(file));
}
std::shared_ptr<const FolderSource> open_gguf_folder(const fs::path& path) {
  return open_gguf_folder(GgufFile::open(path));
}

}  // namespace mh
