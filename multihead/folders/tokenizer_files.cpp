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

void add_token_id(const json& value, std::string_view key, std::string_view name, int32_t vocabulary,
                  std::vector<int32_t>& ids) {
  const bool whole = value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
  if (!whole || value.get<uint64_t>() >= static_cast<uint64_t>(vocabulary)) {
    throw FormatError(fmt::format("{}: {}: expected token ids from 0 to {}, got {}", name, key,
                                  vocabulary - 1, json_excerpt(value)));
  }
  ids.push_back(value.get<int32_t>());
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

std::vector<int32_t> read_suppressed_tokens(std::string_view text, std::string_view name,
                                            int32_t vocabulary) {
  const json document = parse_object(text, name);
  std::vector<int32_t> ids;
  if (const json* words = list_at(document, "bad_words_ids", name)) {
    for (const json& word : *words) {
      if (!word.is_array()) {
        throw FormatError(
            fmt::format("{}: bad_words_ids: expected lists of token ids, got {}", name, json_excerpt(word)));
      }
      if (word.size() == 1) add_token_id(word[0], "bad_words_ids", name, vocabulary, ids);
    }
  }
  if (const json* tokens = list_at(document, "suppress_tokens", name)) {
    for (const json& token : *tokens) add_token_id(token, "suppress_tokens", name, vocabulary, ids);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<int32_t> read_end_tokens(std::string_view text, std::string_view name, int32_t vocabulary) {
  const json document = parse_object(text, name);
  std::vector<int32_t> ids;
  const auto found = document.find("eos_token_id");
  if (found == document.end() || found->is_null() || *found == -1) return ids;
  constexpr int32_t kAnyId = std::numeric_limits<int32_t>::max();
  if (!found->is_array()) {
    add_token_id(*found, "eos_token_id", name, kAnyId, ids);
  } else {
    for (const json& token : *found) add_token_id(token, "eos_token_id", name, kAnyId, ids);
  }
  std::erase_if(ids, [&](int32_t id) { return id >= vocabulary; });  // they never come
  return ids;
}

std::optional<int32_t> read_forced_first(std::string_view text, std::string_view name, int32_t vocabulary) {
  constexpr const char* kKey = "forced_bos_token_id";
  const json document = parse_object(text, name);
  auto found = document.find(kKey);
  if (found == document.end() || found->is_null()) {
    // The older key of BART's config.json.
    const auto forces = document.find("force_bos_token_to_be_generated");
    found = forces != document.end() && *forces == true ? document.find("bos_token_id") : document.end();
    if (found == document.end() || found->is_null()) return std::nullopt;
  }
  std::vector<int32_t> ids;
  add_token_id(*found, kKey, name, vocabulary, ids);
  return ids.front();
}

std::optional<int32_t> read_no_repeat_ngram(std::string_view text, std::string_view name) {
  constexpr const char* kKey = "no_repeat_ngram_size";
  const json document = parse_object(text, name);
  const auto found = document.find(kKey);
  if (found == document.end() || found->is_null()) return std::nullopt;
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  if (!found->is_number_integer() || found->get<int64_t>() < 0 ||
      found->get<uint64_t>() > static_cast<uint64_t>(kMost)) {
    throw FormatError(fmt::format("{}: {}: expected {}, got {}", name, kKey, numbers_within(0, kMost),
                                  json_excerpt(*found)));
  }
  return found->get<int32_t>();
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

std::string write_generation_config(const EncoderDecoderConfig& config, int beam_size) {
  nlohmann::ordered_json document;
  document["decoder_start_token_id"] = config.decoder_start_id;
  document["eos_token_id"] = config.eos_id;
  document["forced_eos_token_id"] = config.eos_id;
  document["pad_token_id"] = config.pad_id;
  if (config.pad_id != config.eos_id) {
    document["bad_words_ids"] =
        nlohmann::ordered_json::array({nlohmann::ordered_json::array({config.pad_id})});
  }
  document["max_length"] = config.max_positions;
  document["num_beams"] = beam_size;
  if (beam_size > 1)
    document["early_stopping"] =
        true;  // a search ends here when as many hypotheses have ended (generate/beam_search.h)
  return document.dump(2) + "\n";
}

}  // namespace mh
