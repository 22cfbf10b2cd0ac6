#include "multihead/models/folder_tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/strict_json.h"
#include "multihead/models/tokenizer_files.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/sentencepiece_model.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSourceModel = "source.spm";
constexpr const char* kTargetModel = "target.spm";
constexpr const char* kVocabulary = "vocab.json";
constexpr const char* kTargetVocabulary = "target_vocab.json";
constexpr const char* kSpecialTokens = "tokenizer_config.json";

bool has_file(const fs::path& path) {
  std::error_code code;
  return fs::exists(path, code);
}

std::string read_required(const fs::path& folder, const char* name) {
  if (!has_file(folder / name)) {
    throw FileError(
        fmt::format("{} has no {} for its SentencePiece tokenizers ({}, {}, {}); copy the whole folder again",
                    folder.string(), name, kSourceModel, kTargetModel, kVocabulary));
  }
  return read_regular_file(folder / name);
}

std::optional<Tokenizer> read_tokenizer_json(const fs::path& path) {
  if (!has_file(path)) return std::nullopt;
  return Tokenizer::from_json(read_regular_file(path), path.string());
}

/// {"token": id, ...}
std::vector<std::pair<std::string, int32_t>> read_vocabulary(std::string_view json, const std::string& name) {
  const auto document = parse_json_strictly(json, name);
  if (!document.is_object())
    throw FormatError(
        fmt::format("{}: expected an object of tokens and ids, got {}", name, json_excerpt(document)));
  std::vector<std::pair<std::string, int32_t>> vocabulary;
  vocabulary.reserve(document.size());
  for (const auto& [token, id] : document.items()) {
    // The tokenizer checks that ids have no holes, so that none is above their number.
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= document.size()) {
      throw FormatError(fmt::format("{}: the id of {}: expected 0 to {}, got {}", name, in_quotes(token),
                                    document.size() - 1, json_excerpt(id)));
    }
    vocabulary.emplace_back(token, id.get<int32_t>());
  }
  return vocabulary;
}

/// One of the two, from a SentencePiece model and a vocabulary.
Tokenizer read_opus_tokenizer(const fs::path& folder, const char* model, const char* vocabulary,
                              const SpecialTokens& special) {
  const std::string pieces = read_required(folder, model), ids = read_required(folder, vocabulary);
  const std::string name = (folder / vocabulary).string();
  TokenizerParts parts = read_sentencepiece_model(pieces, (folder / model).string());
  try {
    use_vocabulary(parts, read_vocabulary(ids, name), special.unknown);
    const auto& entries = parts.model.vocabulary;
    PostProcessorStep& template_step = parts.post_processors.emplace_back();
    template_step.single = {{.sequence = 'A'}, {.special = special.end}};
    for (const std::string& token : {special.end, special.unknown, special.pad}) {
      const auto found =
          std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == token; });
      if (found == entries.end())
        throw FormatError(fmt::format("the vocabulary lacks the token {}", in_quotes(token)));
      parts.added_tokens.push_back({.id = found->second, .content = token});
      if (token == special.end)
        template_step.special_tokens.push_back({.name = token, .ids = {found->second}, .tokens = {token}});
    }
    parts.language_code = true;
    parts.decoders[0].trims_ends = true;
    parts.files = {{model, pieces}, {vocabulary, ids}};
    if (has_file(folder / kSpecialTokens))
      parts.files[kSpecialTokens] = read_regular_file(folder / kSpecialTokens);
    return Tokenizer(std::move(parts));
  } catch (const FormatError& error) {
    const std::string what = error.what();
    throw FormatError(what.starts_with(folder.string()) ? what : fmt::format("{}: {}", name, what));
  }
}

FolderTokenizers read_opus_tokenizers(const fs::path& folder) {
  SpecialTokens special;
  if (const fs::path config = folder / kSpecialTokens; has_file(config))
    special = read_tokenizer_config(read_regular_file(config), config.string());
  if (special.unknown.empty()) special.unknown = "<unk>";
  const bool separate = has_file(folder / kTargetVocabulary);
  const char* const of_target = separate ? kTargetVocabulary : kVocabulary;
  return {.source = read_opus_tokenizer(folder, kSourceModel, kVocabulary, special),
          .target = read_opus_tokenizer(folder, kTargetModel, of_target, special),
          .source_file = (folder / kVocabulary).string(),
          .target_file = (folder / of_target).string()};
}

}  // namespace

FolderTokenizers read_folder_tokenizers(const fs::path& folder) {
  const fs::path source = folder / "tokenizer.json", target = folder / "target_tokenizer.json";
  FolderTokenizers found{.source = read_tokenizer_json(source),
                         .target = read_tokenizer_json(target),
                         .source_file = source.string(),
                         .target_file = target.string()};
  if (!found.source && !found.target && has_file(folder / kSourceModel)) return read_opus_tokenizers(folder);
  return found;
}

}  // namespace mh
