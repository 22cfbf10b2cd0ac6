#include "multihead/folders/gguf_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/gguf_architecture.h"
#include "multihead/folders/gguf_config.h"
#include "multihead/folders/gguf_keys.h"
#include "multihead/folders/gguf_split.h"
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
  for (const auto& [token, name] : {std::pair{GgufSpecial::kBegin, "bos_token"},
                                    {GgufSpecial::kEnd, "eos_token"},
                                    {GgufSpecial::kUnknown, "unk_token"},
                                    {GgufSpecial::kPad, "pad_token"}}) {
    if (const auto id = gguf_special_token(file, token)) document[name] = tokenizer.token_of(*id);
  }
  const nlohmann::json model = nlohmann::json::parse(config);
  document["model_max_length"] =
      model.contains("n_positions") ? model["n_positions"] : model["max_position_embeddings"];
  document["clean_up_tokenization_spaces"] = false;
  document["model_input_names"] = {"input_ids", "attention_mask"};
  if (const auto chat = file.text(kChatTemplateKey); chat && !chat->empty())
    document["chat_template"] = std::string(*chat);
  return document.dump(2) + "\n";
}

/// A text ends with its end token, and that of a turn or a message, as in llama.cpp.
std::string generation_config_of(const GgufFile& file) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  const auto add = [&](const char* name, GgufSpecial token) {
    if (const auto id = gguf_special_token(file, token)) document[name] = *id;
  };
  add("bos_token_id", GgufSpecial::kBegin);
  std::vector<int32_t> ends;
  for (const GgufSpecial token : {GgufSpecial::kEnd, GgufSpecial::kEndOfTurn, GgufSpecial::kEndOfMessage}) {
    const auto id = gguf_special_token(file, token);
    if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) ends.push_back(*id);
  }
  if (ends.size() == 1) document["eos_token_id"] = ends.front();
  if (ends.size() > 1) document["eos_token_id"] = ends;
  add("pad_token_id", GgufSpecial::kPad);
  return document.dump(2) + "\n";
}

/// The files with which sentence-transformers pools states as the key pooling_type says; none where it says nothing, or that
/// they are not pooled.
std::map<std::string, std::string, std::less<>> pooling_files(const GgufFile& file) {
  const GgufArchitecture& architecture = gguf_architecture(file);
  const std::string key = architecture.key("pooling_type");
  const int64_t kind = file.integer(key, 0, 4).value_or(0);
  if (kind == 0) return {};
  if (kind == 4) {
    throw FormatError(
        fmt::format("{}: \"{}\" is 4, a ranking of pairs, which is not supported", file.name(), key));
  }
  constexpr const char* kModes[] = {"mean", "cls", "lasttoken"};
  const auto module = [](int number, const char* path, const char* type) {
    return nlohmann::ordered_json{
        {"idx", number}, {"name", std::to_string(number)}, {"path", path}, {"type", type}};
  };
  const nlohmann::ordered_json modules = {module(0, "", "sentence_transformers.models.Transformer"),
                                          module(1, "1_Pooling", "sentence_transformers.models.Pooling")};
  const nlohmann::ordered_json pooling = {
      {"embedding_dimension", file.integer(architecture.key("embedding_length"), 1, 1 << 16).value_or(1)},
      {"pooling_mode", kModes[kind - 1]},
      {"include_prompt", true}};
  return {{"modules.json", modules.dump(2) + "\n"}, {kGgufPoolingFile, pooling.dump(2) + "\n"}};
}

/// A GGUF file as the folder of Hugging Face that says the same.
class GgufFolder final : public FolderSource {
 public:
  explicit GgufFolder(GgufFile file) : file_(std::move(file)) {
    refuse_unread_architecture(file_);
    config_ = gguf_config_json(file_);
    remarks_ = gguf_remarks(file_);
    tokenizer_ = gguf_tokenizer(file_);
    files_ = pooling_files(file_);
    files_[kConfigFile] = config_;
    files_[kGenerationConfigFile] = generation_config_of(file_);
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
    const GgufArchitecture& architecture = gguf_architecture(file_);
    plan.place = [theirs = std::move(plan.place), &architecture](std::string_view parameter) {
      TensorPlace place = theirs(parameter);
      for (std::string& name : place.names) name = architecture.tensor(name);
      return place;
    };
    plan.prefixes = {""};
    plan.no_weight = [&architecture](const std::string& tensor, const TensorFiles& files, const Model&,
                                     Differences&) {
      // gguf_config_json() has read them.
      if (tensor == "rope_freqs.weight" || (architecture.rope_factors && tensor.starts_with("rope_factors_")))
        return true;
      if (architecture.config != GgufArchitecture::Config::kT5) return false;
      // As in folders of T5: a bias that no class reads, and the table repeated.
      return tensor.ends_with(".cross_attn_rel_b.weight") ||
             (tensor == "output.weight" && files.same(tensor, "token_embd.weight"));
    };
    plan.description = "its metadata";
    plan.remedy = "get the file again";
    plan.remarks.insert(plan.remarks.begin(), remarks_.begin(), remarks_.end());
    return plan;
  }
  TensorFiles tensors() const override {
    const GgufArchitecture& architecture = gguf_architecture(file_);
    TensorFiles files = gguf_weights(file_, architecture, gguf_heads(file_));
    files.call_otherwise([&architecture](std::string_view theirs) { return architecture.tensor(theirs); });
    return files;
  }
  FolderTokenizers tokenizers() const override {
    std::vector<std::string> remarks;
    if (const auto markers = gguf_split_markers(file_); tokenizer_ && !markers.empty()) {
      remarks.push_back(
          fmt::format("{}: {} {} marked as ordinary text, and read as the control token{} that a chat needs",
                      file_.name(), fmt::join(markers, " and "), markers.size() == 1 ? "is" : "are",
                      markers.size() == 1 ? "" : "s"));
    }
    return {.source = tokenizer_,
            .target = std::nullopt,
            .source_file = fmt::format("the tokenizer of {}", file_.name()),
            .target_file = {},
            .remarks = std::move(remarks)};
  }

 private:
  GgufFile file_;
  std::string config_;
  std::vector<std::string> remarks_;
  std::optional<Tokenizer> tokenizer_;
  std::map<std::string, std::string, std::less<>> files_;
};

}  // namespace

bool is_gguf(const fs::path& path) {
  return path.extension() == ".gguf";
}

std::shared_ptr<const FolderSource> open_gguf_folder(GgufFile file) {
  refuse_gguf_part(file);
  return std::make_shared<const GgufFolder>(std::move(file));
}
std::shared_ptr<const FolderSource> open_gguf_folder(const fs::path& path) {
  return std::make_shared<const GgufFolder>(open_gguf_with_parts(path));
}

}  // namespace mh
