#include "multihead/folders/folder_tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/apply_settings.h"
#include "multihead/folders/class_steps.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/piece_tokenizers.h"
#include "multihead/folders/tokenizer_class.h"
#include "multihead/folders/tokenizer_files.h"
#include "multihead/folders/tokenizer_settings.h"
#include "multihead/io/strict_json.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/json_node.h"
#include "multihead/text/sentencepiece_model.h"
#include "multihead/text/tokenizer_json.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {
namespace {

void note(std::string line, std::vector<std::string>& remarks) {
  if (!line.empty()) remarks.push_back(std::move(line));
}

/// tokenizer.json with what the files beside it say, and target_tokenizer.json as it is written.
FolderTokenizers read_json_tokenizers(const FolderSource& folder) {
  FolderTokenizers found{.source_file = folder.path_of(kTokenizerFile),
                         .target_file = folder.path_of(kTargetTokenizerFile)};
  TokenizerSettings settings;
  if (folder.has(kTokenizerFile)) {
    const std::string& path = found.source_file;
    const std::string bytes = folder.read(kTokenizerFile);
    TokenizerParts parts = read_tokenizer_json(bytes, path);
    settings = read_tokenizer_settings(folder);
    const bool byte_level = bytes.find("\"ByteLevel\"") != std::string::npos;
    found.remarks = settings.remarks;
    for (std::string& line : apply_settings(settings, path, byte_level, parts))
      found.remarks.push_back(std::move(line));
    found.languages = codes_of(settings, parts);
    found.source = naming(path, [&] { return Tokenizer(std::move(parts)); });
  }
  if (folder.has(kTargetTokenizerFile)) {
    const std::string& path = found.target_file;
    TokenizerParts parts = read_tokenizer_json(folder.read(kTargetTokenizerFile), path);
    note(unused_settings(settings, path, parts), found.remarks);
    found.target = naming(path, [&] { return Tokenizer(std::move(parts)); });
  }
  return found;
}

/// Puts the tokens around a text that tokenizer_config.json asks for, where no tokenizer.json has a template.
void put_ends(const TokenizerSettings& settings, TokenizerClass kind, TokenizerParts& parts) {
  PostProcessorStep step;
  const auto add = [&](std::optional<bool> wanted, const std::optional<std::string>& named, const char* key,
                       std::string otherwise) {
    if (!wanted.value_or(false)) return;
    if (const std::string_view own = default_token(kind, key); !own.empty()) otherwise = own;
    const std::string token = named.value_or(otherwise);
    const auto found = std::find_if(parts.model.vocabulary.begin(), parts.model.vocabulary.end(),
                                    [&](const auto& entry) { return entry.first == token; });
    if (found == parts.model.vocabulary.end())
      throw FormatError(fmt::format("the vocabulary lacks the {} {}", key, in_quotes(token)));
    step.single.push_back({.special = token});
    step.special_tokens.push_back({.name = token, .ids = {found->second}, .tokens = {token}});
  };
  add(settings.add_bos_token, settings.options.bos, "bos_token", "<s>");
  step.single.push_back({.sequence = 'A'});
  add(settings.add_eos_token, settings.options.eos, "eos_token", "</s>");
  step.pair = step.single;
  for (TemplatePiece piece : step.single) {
    if (piece.sequence == 'A') piece.sequence = 'B';
    piece.type_id = 1;
    step.pair.push_back(piece);
  }
  parts.post_processors = {std::move(step)};
}

/// Gives the usual names to pieces of the model where the files name none.
void name_usual_tokens(const TokenModel& model, TokenizerSettings& settings) {
  for (const auto& [key, token] : {std::pair("bos_token", std::string("<s>")),
                                   {"eos_token", "</s>"},
                                   {"unk_token", *model.unknown_token}}) {
    const bool has = std::any_of(model.vocabulary.begin(), model.vocabulary.end(),
                                 [&, &token = token](const auto& entry) { return entry.first == token; });
    if (has) settings.named.try_emplace(key, TokenToAdd{.token = {.content = token}, .as_text = true});
  }
}

/// With the steps of the class that opens it, else of Llama where only the text's start gets a space, else as SentencePiece does,
/// each text between special tokens by itself.
TokenizerParts parts_of_pieces(TokenizerParts pieces, TokenizerClass kind, const ClassOptions& options) {
  const NormalizerStep& step = pieces.normalizers[0];
  const bool plain = step.character_map.empty() && !step.remove_extra_whitespaces;
  const bool one_space = step.add_dummy_prefix && plain && !options.legacy.value_or(true);
  if (kind != TokenizerClass::kAsWritten || one_space) {
    const bool of_class = kind != TokenizerClass::kAsWritten;
    TokenizerParts parts = merged_pieces(pieces, of_class ? MergeOrder::kByIds : MergeOrder::kByScores);
    put_class_steps(of_class ? kind : TokenizerClass::kLlama, options, parts);
    return parts;
  }
  for (AddedToken& token : pieces.added_tokens) token.in_text = true;
  return pieces;
}

/// tokenizer.model, as transformers 5 opens it where there is no tokenizer.json.
FolderTokenizers read_pieces(const FolderSource& folder) {
  FolderTokenizers found{.source_file = folder.path_of(kPiecesFile)};
  const std::string bytes = folder.read(kPiecesFile);
  TokenizerParts pieces = read_sentencepiece_model(bytes, found.source_file);
  TokenizerSettings settings = read_tokenizer_settings(folder);
  found.remarks = settings.remarks;
  naming(found.source_file, [&] {
    TokenizerClass kind = choose_tokenizer_class(settings.model_type, settings.named_class, false).kind;
    if (kind != TokenizerClass::kLlama && kind != TokenizerClass::kGemma) kind = TokenizerClass::kAsWritten;
    if (kind == TokenizerClass::kAsWritten) name_usual_tokens(pieces.model, settings);
    TokenizerParts parts = parts_of_pieces(std::move(pieces), kind, settings.options);
    if (parts.model.kind != TokenModel::Kind::kBpe) {
      parts.files = {{kPiecesFile, bytes}};
      if (folder.has(kTokenizerConfigFile))
        parts.files[kTokenizerConfigFile] = folder.read(kTokenizerConfigFile);
    }
    put_ends(settings, kind, parts);
    for (std::string& line : apply_settings(settings, found.source_file, false, parts))
      found.remarks.push_back(std::move(line));
    found.source = Tokenizer(std::move(parts));
  });
  return found;
}

/// spm.model, as DebertaV2Tokenizer of transformers 5 opens it where there is no tokenizer.json: its pieces and their scores, and
/// none of SentencePiece's own steps. Nothing where another class opens the folder.
FolderTokenizers read_deberta_pieces(const FolderSource& folder) {
  FolderTokenizers found{.source_file = folder.path_of(kDebertaPiecesFile)};
  const TokenizerSettings settings = read_tokenizer_settings(folder);
  if (choose_tokenizer_class(settings.model_type, settings.named_class, false).kind !=
      TokenizerClass::kDeberta)
    return {};
  found.remarks = settings.remarks;
  TokenizerParts parts = read_sentencepiece_model(folder.read(kDebertaPiecesFile), found.source_file);
  parts.normalizers = {};
  parts.decoders = {};
  parts.model.sentencepiece = false;
  parts.model.looks_up_unknown = true;
  for (AddedToken& token : parts.added_tokens) token.in_text = true;
  naming(found.source_file, [&] {
    put_class_steps(TokenizerClass::kDeberta, settings.options,
                    parts);  // so that no step of the class replaces another
    for (std::string& line : apply_settings(settings, found.source_file, false, parts))
      found.remarks.push_back(std::move(line));
    found.source = Tokenizer(std::move(parts));
  });
  return found;
}

}  // namespace

FolderTokenizers read_folder_tokenizers(const FolderSource& folder) {
  FolderTokenizers found = read_json_tokenizers(folder);
  if (found.source || found.target) return found;
  if (has_opus_tokenizers(folder)) return read_opus_tokenizers(folder);
  if (has_m2m100_tokenizer(folder)) return read_m2m100_tokenizer(folder);
  if (folder.has(kDebertaPiecesFile)) {
    if (FolderTokenizers pieces = read_deberta_pieces(folder); pieces.source) return pieces;
  }
  return folder.has(kPiecesFile) ? read_pieces(folder) : found;
}

}  // namespace mh
