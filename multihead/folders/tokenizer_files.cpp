#include "multihead/folders/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/io/config.h"
#include "multihead/io/strict_json.h"
#include "multihead/text/in_quotes.h"

namespace mh {
namespace {

using nlohmann::json;

json parse_object(std::string_view text, std::string_view name) {
  json document = parse_json_strictly(text, name);
  if (!document.is_object()) {
    throw FormatError(fmt::format("{}: expected an object, got {}", name, json_excerpt(document)));
  }
  return document;
}

// "</s>", or {"content": "</s>", ...} as older versions wrote it.
void read_token(const json& document, const char* key, std::string& token, std::string_view name) {
  const auto found = document.find(key);
  if (found == document.end() || found->is_null()) return;
  const json* text = &*found;
  if (text->is_object() && text->contains("content")) text = &(*text)["content"];
  if (!text->is_string()) {
    throw FormatError(
        fmt::format("{}: {}: expected a token's text, got {}", name, key, json_excerpt(*found)));
  }
  token = text->get<std::string>();
}

const json* list_at(const json& document, const char* key, std::string_view name) {
  const auto found = document.find(key);
  if (found == document.end() || found->is_null()) return nullptr;
  if (!found->is_array()) {
    throw FormatError(fmt::format("{}: {}: expected a list, got {}", name, key, json_excerpt(*found)));
  }
  return &*found;
}

}  // namespace

SpecialTokens read_tokenizer_config(std::string_view text, std::string_view name) {
  const json document = parse_object(text, name);
  SpecialTokens tokens;
  read_token(document, "eos_token", tokens.end, name);
  read_token(document, "unk_token", tokens.unknown, name);
  read_token(document, "pad_token", tokens.pad, name);
  read_token(document, "mask_token", tokens.mask, name);
  read_token(document, "cls_token", tokens.opening, name);
  read_token(document, "sep_token", tokens.closing, name);
  return tokens;
}

std::string write_tokenizer_config(const Tokenizer& tokenizer, const EncoderDecoderConfig& config) {
  nlohmann::ordered_json document;
  document["tokenizer_class"] = "PreTrainedTokenizerFast";
  document["eos_token"] = tokenizer.token_of(config.eos_id);
  document["pad_token"] = tokenizer.token_of(config.pad_id);
  if (const auto unknown = tokenizer.unknown_id()) document["unk_token"] = tokenizer.token_of(*unknown);
  document["model_max_length"] = config.max_positions;
  document["clean_up_tokenization_spaces"] = false;
  if (tokenizer.cut_end() == TextEnd::kStart) document["truncation_side"] = "left";
  // Without it the tokenizer also gives token_type_ids, which MarianMTModel refuses.
  document["model_input_names"] = {"input_ids", "attention_mask"};
  return document.dump(2) + "\n";
}

std::map<std::string, std::string> read_task_prefixes(std::string_view text, std::string_view name) {
  constexpr const char* kKey = "task_specific_params";
  const json document = parse_object(text, name);
  std::map<std::string, std::string> prefixes;
  const auto tasks = document.find(kKey);
  if (tasks == document.end() || !tasks->is_object()) return prefixes;
  for (const auto& [task, settings] : tasks->items()) {
    if (!settings.is_object() || !settings.contains("prefix")) continue;
    const json& prefix = settings["prefix"];
    if (!prefix.is_string()) {
      throw FormatError(fmt::format("{}: {}: the prefix of {} is {}; expected a string", name, kKey,
                                    in_quotes(task), json_excerpt(prefix)));
    }
    prefixes.emplace(task, prefix.get<std::string>());
  }
  return prefixes;
}

std::map<std::string, std::string> read_named_tokens(std::string_view text, std::string_view name) {
  const json document = parse_object(text, name);
  std::map<std::string, std::string> tokens;
  for (const char* key :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    const auto found = document.find(key);
    if (found == document.end()) continue;
    const json& token = found->is_object() && found->contains("content") ? (*found)["content"] : *found;
    if (token.is_string()) tokens.emplace(key, token.get<std::string>());
  }
  return tokens;
}

std::string read_chat_template(std::string_view text, std::string_view name) {
  const json document = parse_object(text, name);
  const auto found = document.find("chat_template");
  if (found == document.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (const json* list = list_at(document, "chat_template", name)) {
    for (const json& one : *list) {
      const auto field = [&](const char* key) {
        return one.is_object() && one.contains(key) && one[key].is_string() ? one[key].get<std::string>()
                                                                            : "";
      };
      if (field("name") == "default") return field("template");
    }
  }
  return "";
}

}  // namespace mh
