#include "multihead/folders/piece_tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/apply_settings.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/tokenizer_class.h"
#include "multihead/folders/tokenizer_files.h"
#include "multihead/io/strict_json.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/json_node.h"
#include "multihead/text/sentencepiece_model.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {
namespace {

constexpr const char* kSourceModel = "source.spm";
constexpr const char* kTargetModel = "target.spm";
constexpr const char* kVocabulary = "vocab.json";
constexpr const char* kTargetVocabulary = "target_vocab.json";
constexpr const char* kManyLanguagesModel = "sentencepiece.bpe.model";

std::string read_required(const FolderSource& folder, const char* name) {
  if (!folder.has(name)) {
    throw FileError(
        fmt::format(
            "there is no {}, which SentencePiece tokenizers ({}, {}, {}) need; copy the whole folder again",
            folder.path_of(name), kSourceModel, kTargetModel, kVocabulary),
        ENOENT);
  }
  return folder.read(name);
}

using Vocabulary = std::vector<std::pair<std::string, int32_t>>;

/// vocab.json: {"token": id, ...}
struct VocabularyFile {
  std::string name, path, bytes;
  Vocabulary ids = {};

  VocabularyFile(const FolderSource& folder, const char* file)
      : name(file), path(folder.path_of(file)), bytes(read_required(folder, file)) {
    const auto document = parse_json_strictly(bytes, path);
    if (!document.is_object())
      throw FormatError(
          fmt::format("{}: expected an object of tokens and ids, got {}", path, json_excerpt(document)));
    ids.reserve(document.size());
    for (const auto& [token, id] : document.items()) {
      // The tokenizer checks that ids have no holes, so that none is above their number.
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= document.size()) {
        throw FormatError(fmt::format("{}: the id of {}: expected 0 to {}, got {}", path, in_quotes(token),
                                      document.size() - 1, json_excerpt(id)));
      }
      ids.emplace_back(token, id.get<int32_t>());
    }
  }
};

/// tokenizer_config.json, where there is one.
SpecialTokens special_tokens_of(const FolderSource& folder) {
  SpecialTokens tokens;
  if (folder.has(kTokenizerConfigFile))
    tokens = read_tokenizer_config(folder.read(kTokenizerConfigFile), folder.path_of(kTokenizerConfigFile));
  if (tokens.unknown.empty()) tokens.unknown = "<unk>";
  return tokens;
}

/// Gives the pieces the ids of a vocabulary, and adds special tokens, which it must have.
void give_ids(const VocabularyFile& vocabulary, const std::vector<std::string>& special,
              const std::string& unknown, TokenizerParts& parts) {
  use_vocabulary(parts, vocabulary.ids, unknown);
  for (const std::string& token : special) {
    const auto found = std::find_if(vocabulary.ids.begin(), vocabulary.ids.end(),
                                    [&](const auto& entry) { return entry.first == token; });
    if (found == vocabulary.ids.end())
      throw FormatError(fmt::format("the vocabulary lacks the token {}", in_quotes(token)));
    parts.added_tokens.push_back({.id = found->second, .content = token});
  }
  parts.decoders[0].trims_ends = true;
}

/// Puts tokens of those that are added before and behind a text; none: an empty name.
void put_around(const std::string& before, const std::string& behind, TokenizerParts& parts) {
  PostProcessorStep& step = parts.post_processors.emplace_back();
  const auto put = [&](const std::string& name) {
    const auto found = std::find_if(parts.added_tokens.begin(), parts.added_tokens.end(),
                                    [&](const AddedToken& token) { return token.content == name; });
    if (found == parts.added_tokens.end()) return;
    step.single.push_back({.special = name});
    step.special_tokens.push_back({.name = name, .ids = {found->id}, .tokens = {name}});
  };
  put(before);
  step.single.push_back({.sequence = 'A'});
  put(behind);
}

/// No tokenizer.json can tell such a tokenizer: a saved folder gets the files that it was read from.
void keep_files(const FolderSource& folder, std::initializer_list<const char*> names, TokenizerParts& parts) {
  for (const char* name : names) {
    if (folder.has(name)) parts.files[name] = folder.read(name);
  }
}

void note_unused(const std::string& file, const TokenizerParts& parts, TokenizerSettings& settings) {
  if (std::string line = unused_settings(settings, file, parts); !line.empty())
    settings.remarks.push_back(std::move(line));
}

/// One of OPUS's two.
Tokenizer read_opus_tokenizer(const FolderSource& folder, const char* model, const VocabularyFile& vocabulary,
                              const SpecialTokens& special, TokenizerSettings& settings) {
  TokenizerParts parts = read_sentencepiece_model(read_required(folder, model), folder.path_of(model));
  return naming(vocabulary.path, [&] {
    give_ids(vocabulary, {special.end, special.unknown, special.pad}, special.unknown, parts);
    put_around("", special.end, parts);
    parts.language_code = true;
    parts.cut = settings.cut;
    keep_files(folder, {model, vocabulary.name.c_str(), kTokenizerConfigFile}, parts);
    note_unused(folder.path_of(model), parts, settings);
    return Tokenizer(std::move(parts));
  });
}

/// fairseq's languages, whose codes have the ids behind the vocabulary's in this order.
constexpr std::string_view kM2m100Languages =
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr "
    "ht "
    "hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa "
    "pl "
    "ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu";
constexpr std::string_view kWmt21Languages = "en ha is ja cs ru zh de";

std::vector<std::string> fairseq_languages(const TokenizerSettings& settings) {
  const std::string& name = settings.language_codes;
  if (!name.empty() && name != "m2m100" && name != "wmt21")
    throw FormatError(
        fmt::format("{}: language_codes: expected m2m100 or wmt21, got {}", settings.file, in_quotes(name)));
  std::string_view rest = name == "wmt21" ? kWmt21Languages : kM2m100Languages;
  std::vector<std::string> languages;
  while (!rest.empty()) {
    const std::string_view language = rest.substr(0, rest.find(' '));
    languages.emplace_back(language);
    rest.remove_prefix(std::min(rest.size(), language.size() + 1));
  }
  return languages;
}

/// Whether a file lists a token, which is then found in texts.
bool lists(const TokenizerSettings& settings, const std::string& content) {
  const auto is_it = [&](const TokenToAdd& one) { return one.token.content == content; };
  return std::any_of(settings.listed.begin(), settings.listed.end(), is_it) ||
         std::any_of(settings.extra.begin(), settings.extra.end(), is_it);
}

/// "__de__"
std::string fairseq_code(const std::string& language) {
  return fmt::format("__{}__", language);
}

void add_languages(const VocabularyFile& vocabulary, const TokenizerSettings& settings,
                   TokenizerParts& parts) {
  auto id = static_cast<int32_t>(vocabulary.ids.size());
  for (const std::string& language : fairseq_languages(settings)) {
    const std::string code = fairseq_code(language);
    parts.added_tokens.push_back({.id = id++, .content = code, .in_text = lists(settings, code)});
  }
}

}  // namespace

bool has_opus_tokenizers(const FolderSource& folder) {
  return folder.has(kSourceModel) || folder.has(kTargetModel);
}

FolderTokenizers read_opus_tokenizers(const FolderSource& folder) {
  const SpecialTokens special = special_tokens_of(folder);
  const VocabularyFile vocabulary(folder, kVocabulary);
  std::optional<VocabularyFile> own;
  if (folder.has(kTargetVocabulary)) own.emplace(folder, kTargetVocabulary);
  const VocabularyFile& of_target = own ? *own : vocabulary;
  TokenizerSettings settings = read_tokenizer_settings(folder);
  FolderTokenizers found{.source_file = vocabulary.path, .target_file = of_target.path};
  found.source = read_opus_tokenizer(folder, kSourceModel, vocabulary, special, settings);
  found.target = read_opus_tokenizer(folder, kTargetModel, of_target, special, settings);
  found.remarks = std::move(settings.remarks);
  return found;
}

bool has_m2m100_tokenizer(const FolderSource& folder) {
  if (!folder.has(kManyLanguagesModel) || !folder.has(kVocabulary)) return false;
  const TokenizerSettings settings = read_tokenizer_settings(folder);
  return choose_tokenizer_class(settings.model_type, settings.named_class, false).name == "M2M100Tokenizer";
}

FolderTokenizers read_m2m100_tokenizer(const FolderSource& folder) {
  const SpecialTokens special = special_tokens_of(folder);
  const VocabularyFile vocabulary(folder, kVocabulary);
  TokenizerSettings settings = read_tokenizer_settings(folder);
  FolderTokenizers found{.source_file = vocabulary.path};
  const std::string path = folder.path_of(kManyLanguagesModel);
  TokenizerParts parts = read_sentencepiece_model(folder.read(kManyLanguagesModel), path);
  naming(vocabulary.path, [&] {
    give_ids(vocabulary, {settings.options.bos.value_or("<s>"), special.end, special.unknown, special.pad},
             special.unknown, parts);
    add_languages(vocabulary, settings, parts);
    put_around(fairseq_code(settings.options.language.value_or("en")), special.end, parts);
    parts.cut = settings.cut;
    keep_files(folder,
               {kManyLanguagesModel, kVocabulary, kTokenizerConfigFile, kSpecialTokensFile, kAddedTokensFile},
               parts);
    note_unused(path, parts, settings);
    found.languages = codes_of(settings, parts);
    found.source = Tokenizer(std::move(parts));
  });
  found.remarks = std::move(settings.remarks);
  return found;
}

}  // namespace mh
