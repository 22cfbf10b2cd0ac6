#include "multihead/folders/gguf_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/families/family.h"
#include "multihead/folders/gguf_config.h"
#include "multihead/folders/gguf_tokenizer.h"
#include "multihead/folders/gguf_weights.h"
#include "multihead/folders/parameters.h"
#include "multihead/folders/tokenizer_fit.h"
#include "multihead/io/gguf.h"
#include "multihead/io/safetensors.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChatTemplateKey = "tokenizer.chat_template";

/// A file, its description and what was made of it.
struct OpenGguf {
  GgufFile file;
  std::string config;  // the config.json of Hugging Face that says the same
  FolderPlan plan;     // as Hugging Face's folder has the weights
  TensorFiles weights;
};

OpenGguf described(GgufFile file) {
  std::string config = gguf_config_json(file);
  FolderPlan plan = read_plan(config, file.name() + ", as a config.json");
  TensorFiles weights = gguf_weights(file, gguf_heads(file));
  return {std::move(file), std::move(config), std::move(plan), std::move(weights)};
}

ModelFolder load(const OpenGguf& gguf) {
  FolderPlan plan = gguf.plan;
  plan.place = gguf_place;
  plan.no_weight = [](const std::string& tensor, const TensorFiles&, const Model&, Differences&) {
    return tensor == "rope_freqs.weight";  // gguf_config_json() has read it
  };
  plan.description = "its metadata";
  plan.remedy = "get the file again";
  ModelFolder folder;
  folder.path = gguf.file.name();
  folder.model_type = plan.model_type;
  folder.model = make_model(gguf.weights, plan);
  folder.tokenizer = gguf_tokenizer(gguf.file);
  const ModelFacts facts = folder.model->facts();
  if (folder.tokenizer) {
    // The ids of the end and of padding come from the file that also has the tokens.
    const auto wrong = tokenizer_mismatches(*folder.tokenizer, facts.vocabulary, facts, "", "");
    if (!wrong.empty())
      throw FormatError(fmt::format("{}: its tokenizer does not match its model: {}", gguf.file.name(),
                                    fmt::join(wrong, "; ")));
  }
  if (facts.eos_id >= 0) folder.end_tokens = {facts.eos_id};
  folder.chat_template = gguf.file.text(kChatTemplateKey).value_or("");
  read_parameters(gguf.weights, plan, *folder.model);
  return folder;
}

/// model.safetensors: matrices are [out, in] in both formats.
std::string weights_of(const OpenGguf& gguf, const std::vector<std::string>& parameters,
                       const FolderWriter& folder) {
  std::vector<std::vector<float>> numbers;
  std::vector<NamedTensor> tensors;
  for (const std::string& parameter : parameters) {
    folder.throw_if_stopped();
    const std::string name = gguf_place(parameter).names.front();
    numbers.push_back(gguf.weights.floats(name));
    tensors.push_back({.name = gguf.plan.place(parameter).names.front(),
                       .shape = gguf.weights.tensor(name).shape,
                       .data = std::span<const float>(numbers.back())});
  }
  return write_safetensors(tensors, {{"format", "pt"}});  // transformers asks for "format"
}

std::string tokenizer_config_of(const OpenGguf& gguf, const ModelFolder& model) {
  nlohmann::ordered_json document;
  document["tokenizer_class"] = "PreTrainedTokenizerFast";
  for (const auto& [key, name] : {std::pair{"tokenizer.ggml.bos_token_id", "bos_token"},
                                  {"tokenizer.ggml.eos_token_id", "eos_token"},
                                  {"tokenizer.ggml.unknown_token_id", "unk_token"},
                                  {"tokenizer.ggml.padding_token_id", "pad_token"}}) {
    if (const auto id = gguf.file.integer(key, 0, model.tokenizer->size() - 1))
      document[name] = model.tokenizer->token_of(static_cast<int32_t>(*id));
  }
  document["model_max_length"] = model.model->facts().max_positions;
  document["clean_up_tokenization_spaces"] = false;
  document["model_input_names"] = {"input_ids", "attention_mask"};
  if (!model.chat_template.empty()) document["chat_template"] = model.chat_template;
  return document.dump(2) + "\n";
}

std::string generation_config_of(const ModelFacts& facts) {
  nlohmann::ordered_json document;
  for (const auto& [name, id] : {std::pair{"bos_token_id", facts.start_id},
                                 {"eos_token_id", facts.eos_id},
                                 {"pad_token_id", facts.pad_id}}) {
    if (id >= 0) document[name] = id;
  }
  return document.dump(2) + "\n";
}

}  // namespace

bool is_gguf(const fs::path& path) {
  return path.extension() == ".gguf";
}

ModelFolder load_gguf(const GgufFile& file) {
  return load(described(file));
}
ModelFolder load_gguf(const fs::path& path) {
  return load_gguf(GgufFile::open(path));
}

Tokenizer load_gguf_tokenizer(const fs::path& path) {
  std::optional<Tokenizer> found = gguf_tokenizer(GgufFile::open(path));
  if (!found) throw_no_gguf_tokenizer(path);
  return *std::move(found);
}

void throw_no_gguf_tokenizer(const fs::path& path) {
  throw FileError(fmt::format("{} has no tokenizer; get a file that has one", path.string()));
}

int64_t convert_gguf(const fs::path& path, const fs::path& out, const std::function<bool()>& stop) {
  const OpenGguf gguf = described(GgufFile::open(path));
  ModelFolder model = load(gguf);
  FolderWriter folder(out, stop);
  folder.add("config.json", gguf.config);
  folder.add("generation_config.json", generation_config_of(model.model->facts()));
  if (model.tokenizer) {
    folder.add("tokenizer.json", model.tokenizer->to_json());
    folder.add("tokenizer_config.json", tokenizer_config_of(gguf, model));
  }
  const int64_t count = model.model->parameter_count();
  std::vector<std::string> parameters;
  model.model->visit([&](const std::string& name, Parameter&) { parameters.push_back(name); });
  model.model.reset();  // its weights are not needed beside those that are written
  folder.add("model.safetensors", weights_of(gguf, parameters, folder));
  folder.commit();
  return count;
}

}  // namespace mh
