#include "multihead/folders/gguf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "multihead/folders/gguf_architecture.h"
#include "multihead/folders/known_keys.h"

namespace mh {
namespace {

constexpr const char* kOfGgufOnly = "it is not supported in GGUF; take the model as a folder";

/// Those of gguf_config.cpp, gguf_rope.cpp and gguf_folder.cpp, behind "ARCHITECTURE.".
constexpr const char* kArchitectureKeys[] = {"vocab_size",           "context_length",
                                             "embedding_length",     "block_count",
                                             "feed_forward_length",  "expert_count",
                                             "attention.head_count", "attention.head_count_kv",
                                             "attention.key_length", "attention.value_length",
                                             "rope.dimension_count", "rope.freq_base",
                                             "rope.scale_linear",    "rope.scaling.type",
                                             "rope.scaling.factor",  "rope.scaling.original_context_length",
                                             "pooling_type"};
/// Those of gguf_tokenizer.cpp, gguf_split.cpp, gguf_folder.cpp and of the file's own form.
constexpr const char* kOtherKeys[] = {
    "general.architecture", "general.alignment", "split.no", "split.count", "split.tensors.count",
    "tokenizer.chat_template", "tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens",
    "tokenizer.ggml.token_type", "tokenizer.ggml.scores", "tokenizer.ggml.merges",
    "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id", "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.padding_token_id",
    "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_space_prefix",
    // Of Unigram models, and of no use to others.
    "tokenizer.ggml.remove_extra_whitespaces", "tokenizer.ggml.precompiled_charsmap"};

KeyNames obeyed_keys(const GgufArchitecture& architecture) {
  KeyNames names{std::begin(kOtherKeys), std::end(kOtherKeys)};
  for (const char* key : kArchitectureKeys) names.insert(architecture.key(key));
  for (const GgufField& field : architecture.fields) names.insert(architecture.key(field.key));
  names.insert(architecture.key(architecture.epsilon_key));
  for (const char* key : architecture.finish_keys) names.insert(architecture.key(key));
  return names;
}

/// Behind "ARCHITECTURE.".
constexpr KeyRule kArchitectureRules[] = {
    {.key = "attention.causal", .harmless = "[true]", .refused = kOfGgufOnly},
    {.key = "expert_used_count", .harmless = "[0]"},
    {.key = "rope.scaling.finetuned"},
    {.key = "rope.scaling.attn_factor", .harmless = "[1.0]", .refused = kOfGgufOnly},
    {.key = "rope.scaling.yarn_*"},  // of no other scaling than yarn, which gguf_rope.cpp reads
    {.key = "tensor_data_layout"},
};

constexpr KeyRule kGgufRules[] = {
    {.key = "general.type", .harmless = R"(["model"])", .refused = "expected a model"},
    {.key = "general.sampling.*", .harmless = "[]"},
    {.key = "general.*"},                  // who made it of what
    {.key = "tokenizer.chat_template.*"},  // besides the one that is used
    {.key = "tokenizer.chat_templates"},
    {.key = "tokenizer.huggingface.json"},
    {.key = "tokenizer.ggml.add_sep_token", .harmless = "[false]"},
    // For filling in, masks and classes, which llama.cpp puts before or behind no text of itself.
    {.key = "tokenizer.ggml.fim_*"},
    {.key = "tokenizer.ggml.prefix_token_id"},
    {.key = "tokenizer.ggml.middle_token_id"},
    {.key = "tokenizer.ggml.suffix_token_id"},
    {.key = "tokenizer.ggml.seperator_token_id"},
    {.key = "tokenizer.ggml.cls_token_id"},
    {.key = "tokenizer.ggml.mask_token_id"},
    {.key = "tokenizer.ggml.token_type_count"},
};

/// Keys by which llama.cpp reads a model.
bool is_of_a_model(std::string_view key, const GgufArchitecture& architecture) {
  constexpr std::string_view kBegins[] = {"general.", "tokenizer.", "split.", "adapter."};
  return key.starts_with(architecture.key("")) ||
         std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view begin) { return key.starts_with(begin); });
}

int64_t vocabulary_of(const GgufFile& file) {
  if (file.contains("tokenizer.ggml.tokens")) return file.items("tokenizer.ggml.tokens");
  const GgufTensor* embedding = file.tensor("token_embd.weight");
  return embedding == nullptr ? 0 : embedding->shape.front();
}

/// What the file says, whether or not it is a token.
std::optional<int64_t> said_id(const GgufFile& file, GgufSpecial token) {
  return file.integer(gguf_key(token), INT64_MIN, INT64_MAX);
}

constexpr GgufSpecial kSpecials[] = {GgufSpecial::kBegin,     GgufSpecial::kEnd,
                                     GgufSpecial::kEndOfTurn, GgufSpecial::kEndOfMessage,
                                     GgufSpecial::kUnknown,   GgufSpecial::kPad};

}  // namespace

const char* gguf_key(GgufSpecial token) {
  switch (token) {
    case GgufSpecial::kBegin:
      return "tokenizer.ggml.bos_token_id";
    case GgufSpecial::kEnd:
      return "tokenizer.ggml.eos_token_id";
    case GgufSpecial::kEndOfTurn:
      return "tokenizer.ggml.eot_token_id";
    case GgufSpecial::kEndOfMessage:
      return "tokenizer.ggml.eom_token_id";
    case GgufSpecial::kUnknown:
      return "tokenizer.ggml.unknown_token_id";
    case GgufSpecial::kPad:
      break;
  }
  return "tokenizer.ggml.padding_token_id";
}

std::optional<int32_t> gguf_special_token(const GgufFile& file, GgufSpecial token) {
  const auto said = said_id(file, token);
  if (!said) return std::nullopt;
  const int64_t tokens = vocabulary_of(file);
  if (*said >= 0 && *said < tokens) return static_cast<int32_t>(*said);
  if (file.text("tokenizer.ggml.model").value_or("") != "llama") return std::nullopt;
  constexpr std::pair<GgufSpecial, int32_t> kDefaults[] = {
      {GgufSpecial::kUnknown, 0}, {GgufSpecial::kBegin, 1}, {GgufSpecial::kEnd, 2}};
  for (const auto& [special, id] : kDefaults) {
    if (special == token && id < tokens) return id;
  }
  return std::nullopt;
}

std::vector<std::string> gguf_remarks(const GgufFile& file) {
  const GgufArchitecture& architecture = gguf_architecture(file);
  nlohmann::json values = nlohmann::json::object();
  for (const std::string_view key : file.keys()) {
    if (!is_of_a_model(key, architecture)) continue;
    const std::string said = file.described(key);
    nlohmann::json value = nlohmann::json::parse(said, nullptr, false);
    values[std::string(key)] = value.is_discarded() ? nlohmann::json(said) : std::move(value);
  }
  KnownKeys keys{.obeyed = obeyed_keys(architecture),
                 .rules = {std::begin(kGgufRules), std::end(kGgufRules)}};
  std::vector<std::string> names;  // which the rules look at
  names.reserve(std::size(kArchitectureRules));
  for (KeyRule rule : kArchitectureRules) {
    rule.key = names.emplace_back(architecture.key(rule.key));
    keys.rules.push_back(rule);
  }
  const KeyFindings found = keys.look_at(values, file.name());
  found.throw_if_refused();
  std::vector<std::string> remarks;
  if (std::string line = found.remark(); !line.empty()) remarks.push_back(std::move(line));
  for (const GgufSpecial token : kSpecials) {
    const std::optional<int64_t> said = said_id(file, token);
    const std::optional<int32_t> used = gguf_special_token(file, token);
    if (!said || (used && *used == *said)) continue;
    remarks.push_back(fmt::format(
        "{}: {} is {}, which is none of its {} tokens; {}", file.name(), gguf_key(token), *said,
        vocabulary_of(file), used ? fmt::format("{} is taken, as in llama.cpp", *used) : "it was not used"));
  }
  return remarks;
}

}  // namespace mh
