#include "multihead/folders/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/chat_markers.h"
#include "multihead/folders/gguf_keys.h"
#include "multihead/folders/gguf_words.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/piece_pairs.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {
namespace {

constexpr std::string_view kByteLevel = "gpt2", kSentencePiece = "llama",
                           kUnigram = "t5";  // tokenizer.ggml.model
constexpr const char *kTokens = "tokenizer.ggml.tokens", *kTypes = "tokenizer.ggml.token_type",
                     *kScores = "tokenizer.ggml.scores", *kMerges = "tokenizer.ggml.merges";
// Types of tokens, as llama.cpp numbers them (llama_token_type).
constexpr int64_t kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

std::pair<std::string, std::string> merge_of(std::string_view merge, const std::string& file) {
  const size_t space = merge.find(' ');
  if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos)
    throw FormatError(
        fmt::format("{}: \"tokenizer.ggml.merges\": expected two tokens and a space between, got {}", file,
                    in_quotes(merge)));
  return {std::string(merge.substr(0, space)), std::string(merge.substr(space + 1))};
}

/// What both kinds of tokenizers have: the tokens of the file with their types.
struct Tokens {
  std::vector<std::string_view> texts;
  std::vector<int64_t> types;  // 0 where the file has none

  Tokens(const GgufFile& file, std::string_view model) {
    const auto missing = [&](const char* what) {
      throw FormatError(fmt::format("{}: \"tokenizer.ggml.{}\" is missing", file.name(), what));
    };
    if (!file.contains(kTokens)) missing("tokens");
    // Counts are compared before lists are read, which take more memory than their bytes in the file.
    const int64_t count = file.items(kTokens);
    const GgufTensor* embedding = file.tensor("token_embd.weight");
    if (embedding != nullptr && count > embedding->shape.front())
      throw FormatError(fmt::format("{}: \"{}\" has {} items, \"token_embd.weight\" {} rows", file.name(),
                                    kTokens, count, embedding->shape.front()));
    texts = *file.texts(kTokens);
    for (const char* key : {kTypes, kScores}) {
      if (file.contains(key) && file.items(key) != count)
        throw FormatError(fmt::format("{}: \"{}\" has {} items, \"{}\" {}", file.name(), key, file.items(key),
                                      kTokens, count));
    }
    const char* const needed = model == kByteLevel ? "merges" : "scores";
    if (!file.contains(fmt::format("tokenizer.ggml.{}", needed))) missing(needed);
    types = file.integers(kTypes).value_or(std::vector<int64_t>(texts.size()));
  }
};

/// Whether a token of the vocabulary that the file marks as an ordinary one must be found in the text as it is: a chat's
/// markers, which no text would become otherwise. llama.cpp, too, reads <|im_end|> as a control token whatever its type.
bool is_split_marker(std::string_view token, int64_t type) {
  return type != kControl && type != kUnknown && type != kUserDefined &&
         std::find(kChatMarkers.begin(), kChatMarkers.end(), token) != kChatMarkers.end();
}

/// The vocabulary and the tokens that are found in the text as they are.
void add_tokens(const Tokens& tokens, TokenizerParts& parts) {
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    const std::string token(tokens.texts[i]);
    const auto id = static_cast<int32_t>(i);
    const int64_t type = tokens.types[i];
    parts.model.vocabulary.emplace_back(token, id);
    if (type == kControl || type == kUnknown || type == kUserDefined || is_split_marker(token, type))
      parts.added_tokens.push_back({.id = id, .content = token, .special = type != kUserDefined});
  }
}

/// Whether a text begins and ends with special tokens, if the file does not say.
struct UsualEnds {
  bool begins = true, ends = false;
};

/// Special tokens before and behind a text.
PostProcessorStep template_of(const GgufFile& file, const Tokens& tokens, UsualEnds usual) {
  PostProcessorStep step{.kind = PostProcessorStep::Kind::kTemplateProcessing};
  const auto add = [&](const char* asked, GgufSpecial which, bool otherwise) {
    const std::optional<bool> said = file.flag(asked);
    if (!said.value_or(otherwise)) return;
    const auto id = gguf_special_token(file, which);
    if (!id && !said) return;
    if (!id) {
      throw FormatError(fmt::format("{}: \"{}\" is true, but \"{}\" is {}", file.name(), asked,
                                    gguf_key(which),
                                    file.contains(gguf_key(which)) ? "no token of the file" : "missing"));
    }
    const std::string token(tokens.texts[static_cast<size_t>(*id)]);
    step.single.push_back({.special = token});
    if (step.special_tokens.empty() || step.special_tokens.back().name != token)  // both may be one token
      step.special_tokens.push_back({.name = token, .ids = {static_cast<int32_t>(*id)}, .tokens = {token}});
  };
  add("tokenizer.ggml.add_bos_token", GgufSpecial::kBegin, usual.begins);
  step.single.push_back({.sequence = 'A'});
  add("tokenizer.ggml.add_eos_token", GgufSpecial::kEnd, usual.ends);
  step.pair = step.single;
  step.pair.push_back({.sequence = 'B', .type_id = 1});
  return step;
}

/// Model "gpt2". Returns whether texts begin with the begin-of-text token where the file does not say.
bool make_byte_level(const GgufFile& file, TokenizerParts& parts) {
  const std::vector<std::string_view> merges = *file.texts(kMerges);
  for (const std::string_view merge : merges) parts.model.merges.push_back(merge_of(merge, file.name()));
  parts.post_processors = {{.kind = PostProcessorStep::Kind::kByteLevel, .trim_offsets = false}};
  parts.decoders = {{.kind = DecoderStep::Kind::kByteLevel}};
  return set_gguf_words(file.text("tokenizer.ggml.pre").value_or(""), file.name(), parts);
}

/// The tokens with their scores; the first unknown one becomes the model's.
std::vector<ScoredPiece> scored_pieces(const GgufFile& file, const Tokens& tokens, TokenizerParts& parts) {
  const std::vector<double> scores = *file.numbers(kScores);
  std::vector<ScoredPiece> pieces;
  for (size_t i = 0; i < scores.size(); ++i) {
    const std::string text(tokens.texts[i]);
    if (!std::isfinite(scores[i]))
      throw FormatError(
          fmt::format("{}: \"{}\": that of {} is not finite", file.name(), kScores, in_quotes(text)));
    if (tokens.types[i] == kUnknown && !parts.model.unknown_token) parts.model.unknown_token = text;
    pieces.push_back({.text = text, .score = scores[i], .id = static_cast<int32_t>(i)});
  }
  return pieces;
}

/// Model "t5": the pipeline that T5's tokenizer.json has.
void make_unigram(const GgufFile& file, const Tokens& tokens, TokenizerParts& parts) {
  parts.model.kind = TokenModel::Kind::kUnigram;
  parts.model.pieces = scored_pieces(file, tokens, parts);
  if (const auto map = file.integers("tokenizer.ggml.precompiled_charsmap"); map && !map->empty()) {
    NormalizerStep& step = parts.normalizers.emplace_back();
    step.kind = NormalizerStep::Kind::kPrecompiled;
    for (const int64_t byte : *map) step.character_map.push_back(static_cast<char>(byte));
  }
  if (file.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(true))
    parts.pre_tokenizers.push_back({.kind = PreTokenizerStep::Kind::kWhitespaceSplit});
  const PrependScheme scheme = file.flag("tokenizer.ggml.add_space_prefix").value_or(true)
                                   ? PrependScheme::kAlways
                                   : PrependScheme::kNever;
  parts.pre_tokenizers.push_back({.kind = PreTokenizerStep::Kind::kMetaspace, .prepend_scheme = scheme});
  parts.decoders.push_back({.kind = DecoderStep::Kind::kMetaspace, .prepend_scheme = scheme});
}

/// Model "llama": the pipeline that Llama 2's tokenizer.json has.
void make_sentence_piece(const GgufFile& file, const Tokens& tokens, TokenizerParts& parts) {
  std::vector<ScoredPiece> pieces = scored_pieces(file, tokens, parts);
  std::erase_if(pieces, [&](const ScoredPiece& piece) {  // no merges make them
    const int64_t type = tokens.types[static_cast<size_t>(piece.id)];
    return type == kUnknown || type == kControl || type == kUserDefined || type == kUnused || type == kByte;
  });
  parts.model.merges = merges_of_scores(pieces);
  parts.model.byte_fallback = true;
  parts.model.fuse_unknown = true;
  constexpr const char* kMark = "\u2581";
  const bool prefix = file.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  if (prefix) {
    NormalizerStep& step = parts.normalizers.emplace_back();
    step.kind = NormalizerStep::Kind::kPrepend;
    step.content = kMark;
  }
  NormalizerStep& escape = parts.normalizers.emplace_back();
  escape.kind = NormalizerStep::Kind::kReplace;
  escape.pattern.literal = " ";
  escape.content = kMark;
  DecoderStep& unescape = parts.decoders.emplace_back();
  unescape.kind = DecoderStep::Kind::kReplace;
  unescape.pattern.literal = kMark;
  unescape.content = " ";
  parts.decoders.emplace_back().kind = DecoderStep::Kind::kByteFallback;
  parts.decoders.emplace_back().kind = DecoderStep::Kind::kFuse;
  if (prefix) {
    DecoderStep& step = parts.decoders.emplace_back();
    step.kind = DecoderStep::Kind::kStrip;
    step.content = " ";
    step.start = 1;
  }
}

}  // namespace

std::vector<std::string> gguf_split_markers(const GgufFile& file) {
  if (!file.contains(kTokens)) return {};
  const std::vector<std::string_view> texts = *file.texts(kTokens);
  const std::vector<int64_t> types = file.integers(kTypes).value_or(std::vector<int64_t>(texts.size()));
  std::vector<std::string> found;
  for (size_t i = 0; i < std::min(texts.size(), types.size()); ++i) {
    if (is_split_marker(texts[i], types[i])) found.emplace_back(texts[i]);
  }
  return found;
}

std::optional<Tokenizer> gguf_tokenizer(const GgufFile& file) {
  const auto model = file.text("tokenizer.ggml.model");
  if (!model || *model == "none" || *model == "no_vocab") return std::nullopt;
  if (*model != kByteLevel && *model != kSentencePiece && *model != kUnigram)
    throw FormatError(
        fmt::format("{}: \"tokenizer.ggml.model\": tokenizers of the kind {} are not read; expected \"{}\" "
                    "(byte-level byte-pair encoding), \"{}\" (SentencePiece's) or \"{}\" (Unigram)",
                    file.name(), in_quotes(*model), kByteLevel, kSentencePiece, kUnigram));
  const Tokens tokens(file, *model);
  TokenizerParts parts;
  add_tokens(tokens, parts);
  try {
    UsualEnds usual;
    if (*model == kByteLevel) {
      usual.begins = make_byte_level(file, parts);
    } else if (*model == kUnigram) {
      usual = {.begins = false, .ends = true};
      make_unigram(file, tokens, parts);
    } else {
      make_sentence_piece(file, tokens, parts);
    }
    if (PostProcessorStep added = template_of(file, tokens, usual); !added.special_tokens.empty())
      parts.post_processors.push_back(std::move(added));
    return Tokenizer(std::move(parts));
  } catch (const FormatError& error) {
    if (std::string_view(error.what()).starts_with(file.name())) throw;
    throw FormatError(fmt::format("{}: its tokenizer: {}", file.name(), error.what()));
  }
}

}  // namespace mh
