#include "multihead/folders/tokenizer_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/family.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/tokenizer_keys.h"
#include "multihead/io/strict_json.h"
#include "multihead/text/json_node.h"

namespace mh {
namespace {

using nlohmann::json;

bool is_named_token(std::string_view key) {
  return std::find(kNamedTokens.begin(), kNamedTokens.end(), key) != kNamedTokens.end();
}

struct File {
  std::string path, bytes;
  json document;
  JsonNode root() const { return {document, "", path}; }
};

std::optional<File> open_file(const FolderSource& folder, const char* name) {
  if (!folder.has(name)) return std::nullopt;
  File file{.path = folder.path_of(name), .bytes = folder.read(name), .document = nullptr};
  file.document = parse_json_strictly(file.bytes, file.path);
  if (!file.document.is_object())
    throw FormatError(fmt::format("{}: expected an object, got {}", file.path, json_excerpt(file.document)));
  return file;
}

std::optional<bool> flag_of(const JsonNode& root, const char* key) {
  return root.find(key) ? std::optional(root.flag(key, false)) : std::nullopt;
}

/// "<ent>", or {"content": "<ent>", "lstrip": true, ...}.
AddedToken token_of(const JsonNode& node, bool special) {
  AddedToken token{.content = {}, .normalized = false, .special = special};
  if (node.value().is_string()) {
    token.content = node.text();
  } else {
    if (!node.value().is_object() || !node.value().contains("content")) node.fail("expected a token's text");
    token.content = node.at("content").text();
    token.single_word = node.flag("single_word", false);
    token.lstrip = node.flag("lstrip", false);
    token.rstrip = node.flag("rstrip", false);
    token.special = special || node.flag("special", false);
    token.normalized = node.flag("normalized", !token.special);
  }
  if (token.content.empty()) node.fail("expected a token's text");
  return token;
}

/// Collects what the files say, where the later of two that name a token by one key counts.
class Reader {
 public:
  explicit Reader(TokenizerSettings& settings) : settings_(settings) {}

  void read_config(const File& file) {
    const JsonNode root = file.root();
    ClassOptions& options = settings_.options;
    options.do_lower_case = flag_of(root, "do_lower_case");
    options.strip_accents = flag_of(root, "strip_accents");
    options.tokenize_chinese_chars = flag_of(root, "tokenize_chinese_chars");
    options.add_prefix_space = flag_of(root, "add_prefix_space");
    options.trim_offsets = flag_of(root, "trim_offsets");
    options.split_by_punct = flag_of(root, "split_by_punct");
    options.legacy = flag_of(root, "legacy");
    options.legacy_behaviour = flag_of(root, "legacy_behaviour");
    if (const std::string language = root.text("src_lang", ""); !language.empty())
      options.language = language;
    settings_.target_language = root.text("tgt_lang", "");
    settings_.language_codes = root.text("language_codes", "");
    settings_.add_bos_token = flag_of(root, "add_bos_token");
    settings_.add_eos_token = flag_of(root, "add_eos_token");
    settings_.clean_up_spaces = root.flag("clean_up_tokenization_spaces", false);
    settings_.clean_up_spaces_of_bpe =
        root.flag("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", false);
    settings_.split_special_tokens = root.flag("split_special_tokens", false);
    if (const auto side = root.find("truncation_side")) {
      constexpr std::array kSides = {"left", "right"};
      settings_.cut = side->choice<int>(kSides) == 0 ? TextEnd::kStart : TextEnd::kEnd;
    }
    if (const auto names = root.find("model_input_names")) {
      bool types = false;
      for (const JsonNode& name : names->items()) types = types || name.text() == "token_type_ids";
      settings_.gives_types = types;
    }
    read_names(file);
    if (const auto list = root.find("added_tokens_decoder")) read_added_decoder(*list, file);
    read_extra(file);
  }

  /// special_tokens_map.json, which counts only where tokenizer_config.json has no added_tokens_decoder.
  void read_map(const File& file) {
    read_names(file);
    const bool has_extra = !settings_.extra.empty();
    if (!has_extra) read_extra(file);
  }

  /// added_tokens.json: {"<ent>": 30522, ...}, under the same condition.
  void read_added(const File& file) {
    std::set<std::string> special;
    for (const auto& [key, token] : settings_.named) special.insert(token.token.content);
    for (const TokenToAdd& token : settings_.extra) special.insert(token.token.content);
    std::map<int32_t, std::string> by_id;
    for (const auto& [content, id] : file.document.items()) {
      if (content.empty()) file.root().fail("expected a token's text");
      by_id[JsonNode(id, content, file.path).number()] = content;
    }
    for (const auto& [id, content] : by_id) {
      const bool is_special = special.contains(content);
      settings_.listed.push_back(
          {.token = {.content = content, .normalized = !is_special, .special = is_special},
           .file = file.path,
           .as_it_says = true});
    }
  }

  void finish() {
    ClassOptions& options = settings_.options;
    for (const auto& [key, to] : {std::pair{"cls_token", &options.cls},
                                  {"sep_token", &options.sep},
                                  {"bos_token", &options.bos},
                                  {"eos_token", &options.eos},
                                  {"unk_token", &options.unk}}) {
      const auto found = settings_.named.find(key);
      if (found != settings_.named.end()) *to = found->second.token.content;
    }
    std::vector<TokenToAdd> extra;
    for (const auto& [key, token] : own_) extra.push_back(token);
    extra.insert(extra.end(), settings_.extra.begin(), settings_.extra.end());
    settings_.extra = std::move(extra);
  }

  /// The tokens that a file would add besides, for a remark.
  std::vector<std::string> further(const File& file, bool is_map) const {
    std::set<std::string> known;
    for (const TokenToAdd& token : settings_.listed) known.insert(token.token.content);
    for (const auto& [key, token] : settings_.named) known.insert(token.token.content);
    for (const TokenToAdd& token : settings_.extra) known.insert(token.token.content);
    std::vector<std::string> more;
    const auto note = [&](const std::string& token) {
      if (known.insert(token).second) more.push_back(in_quotes(token));
    };
    for (const auto& [key, value] : file.document.items()) {
      if (!is_map) {
        note(key);
      } else if (value.is_array()) {
        for (const JsonNode& item : file.root().at(key.c_str()).items()) note(token_of(item, true).content);
      }
    }
    return more;
  }

 private:
  void read_names(const File& file) {
    for (const auto& [key, value] : file.document.items()) {
      if (value.is_null() || !key.ends_with("_token")) continue;
      const JsonNode node = file.root().at(key.c_str());
      if (is_named_token(key)) {
        settings_.named[key] = {
            .token = token_of(node, true), .file = file.path, .as_text = value.is_string()};
      } else if (value.is_string() || (value.is_object() && value.contains("content"))) {
        own_[key] = {.token = token_of(node, true), .file = file.path};
      }
    }
  }

  /// {"30522": {"content": "<ent>", ...}, ...}
  void read_added_decoder(const JsonNode& list, const File& file) {
    if (!list.value().is_object()) list.fail("expected an object of ids and tokens");
    settings_.lists_all_added = true;
    std::map<int32_t, AddedToken> by_id;
    for (const auto& [key, value] : list.value().items()) {
      int32_t id = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || end != key.data() + key.size() || id < 0)
        list.fail(fmt::format("expected ids from 0 on, got {}", in_quotes(key)));
      const JsonNode node = list.at(key.c_str());
      if (!node.value().is_object()) node.fail("expected a token as an object");
      by_id[id] = token_of(node, false);
    }
    for (auto& [id, token] : by_id)
      settings_.listed.push_back({.token = std::move(token), .file = file.path, .as_it_says = true});
  }

  /// A list, or an object of names and tokens. extra_special_tokens counts before its older name.
  void read_extra(const File& file) {
    const JsonNode root = file.root();
    for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
      const auto found = root.find(key);
      if (!found || found->value().empty()) continue;
      if (found->value().is_object()) {
        for (const auto& [name, value] : found->value().items())
          own_[name] = {.token = token_of(found->at(name.c_str()), true), .file = file.path};
      } else {
        for (const JsonNode& item : found->items())
          settings_.extra.push_back({.token = token_of(item, true), .file = file.path});
      }
      return;
    }
  }

  TokenizerSettings& settings_;
  std::map<std::string, TokenToAdd> own_ = {};  // tokens with keys that no other tokenizer has
};

void note_unused(const Reader& reader, const File& file, bool is_map, TokenizerSettings& settings) {
  const auto more = reader.further(file, is_map);
  if (more.empty()) return;
  settings.remarks.push_back(
      fmt::format("{}: {} {} not used, since tokenizer_config.json has added_tokens_decoder, which lists all "
                  "added tokens",
                  file.path, fmt::join(more, ", "), more.size() == 1 ? "is" : "are"));
}

}  // namespace

TokenizerSettings read_tokenizer_settings(const FolderSource& folder) {
  TokenizerSettings settings;
  Reader reader(settings);
  const auto config = open_file(folder, kTokenizerConfigFile);
  const auto map = open_file(folder, kSpecialTokensFile);
  const auto added = open_file(folder, kAddedTokensFile);
  const auto model = open_file(folder, kConfigFile);
  std::string named, model_type;
  if (model) {
    const JsonNode root = model->root();
    if (const auto type = root.find("model_type"); type && type->value().is_string())
      model_type = type->text();
    if (const auto kind = root.find("tokenizer_class"); kind && kind->value().is_string())
      named = kind->text();
    if (const auto rows = root.find("vocab_size"); rows && rows->value().is_number_unsigned())
      settings.rows = rows->number();
  }
  if (config) {
    named = config->root().text("tokenizer_class", named.c_str());
    reader.read_config(*config);
    if (std::string line = tokenizer_config_remark(config->bytes, config->path); !line.empty())
      settings.remarks.push_back(std::move(line));
  }
  if (map) {
    if (!settings.lists_all_added) reader.read_map(*map);
    if (std::string line = special_tokens_remark(map->bytes, map->path); !line.empty())
      settings.remarks.push_back(std::move(line));
  }
  if (added && !settings.lists_all_added) reader.read_added(*added);
  reader.finish();
  if (settings.lists_all_added) {
    if (map) note_unused(reader, *map, true, settings);
    if (added) note_unused(reader, *added, false, settings);
  }
  const Family* const family = family_named(model_type);
  settings.translates = family != nullptr && family->texts != FamilyTexts::kOne;
  settings.model_type = std::move(model_type);
  settings.named_class = std::move(named);
  if (config) settings.file = config->path;
  return settings;
}

}  // namespace mh
