#include "multihead/text/train_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/base/utf8.h"
#include "multihead/io/check_option.h"
#include "multihead/text/added_tokens.h"
#include "multihead/text/learn_merges.h"
#include "multihead/text/normalizer.h"
#include "multihead/text/pre_tokenizer.h"
#include "multihead/text/tokenizer_parts.h"
#include "multihead/text/word_model.h"

namespace mh {
namespace {

const std::vector<std::string> kSpecialTokens = {"</s>", "<unk>", "<pad>"};  // kEndId, kUnknownId, kPadId
constexpr const char* kSpaceMark = "\u2581";

std::vector<NormalizerStep> letter_steps(Normalization normalization, bool lowercase) {
  std::vector<NormalizerStep> steps;
  if (normalization != Normalization::kNone) {
    const bool compatibility = normalization == Normalization::kNfkc;
    steps.emplace_back().kind = compatibility ? NormalizerStep::Kind::kNfkc : NormalizerStep::Kind::kNfc;
  }
  if (lowercase) steps.emplace_back().kind = NormalizerStep::Kind::kLowercase;
  return steps;
}

NormalizerStep space_instead_of(Pattern::Kind kind, const std::string& literal) {
  NormalizerStep step;
  step.kind = NormalizerStep::Kind::kReplace;
  step.pattern.kind = kind;
  step.pattern.literal = literal;
  step.content = std::string(1, ' ');
  return step;
}

/// What all tokenizers learned here share: the special tokens, and "</s>" behind every text.
TokenizerParts common_parts() {
  TokenizerParts parts;
  for (int32_t id = 0; id < static_cast<int32_t>(kSpecialTokens.size()); ++id) {
    parts.added_tokens.push_back({.id = id, .content = kSpecialTokens[id]});
  }
  const std::string& end = kSpecialTokens[kEndId];
  const TemplatePiece end_piece = {.sequence = 0, .special = end, .type_id = 0};
  PostProcessorStep step;
  step.single = {{.sequence = 'A', .special = "", .type_id = 0}, end_piece};
  step.pair = {{.sequence = 'A', .special = "", .type_id = 0},
               {.sequence = 'B', .special = "", .type_id = 0},
               end_piece};
  step.special_tokens = {{.name = end, .ids = {kEndId}, .tokens = {end}}};
  parts.post_processors = {step};
  parts.model.unknown_token = kSpecialTokens[kUnknownId];
  return parts;
}

/// How often each word occurs, by falling count and then by the bytes; cut as the tokenizer will cut them.
std::vector<std::pair<std::string, int64_t>> count_words(std::span<const std::string> lines,
                                                         const TokenizerParts& parts, std::string_view name) {
  std::vector<SoughtToken> sought;
  for (const AddedToken& token : parts.added_tokens) sought.push_back({token, token.content});
  const AddedTokenFinder specials(std::move(sought));
  std::unordered_map<std::string, int64_t, StringHash, std::equal_to<>> counts;
  for (size_t i = 0; i < lines.size(); ++i) {
    throw_if_stopped();
    if (first_invalid_utf8(lines[i]) != std::string_view::npos) {
      throw FormatError(fmt::format("{}: line {} is not UTF-8", name, i + 1));
    }
    for (const Piece& segment : specials.find(lines[i])) {
      if (segment.token >= 0) continue;
      Pieces pieces;
      const auto text = std::string_view(lines[i]).substr(segment.begin, segment.end - segment.begin);
      pieces.text = AlignedText::of(text, false);
      normalize(parts.normalizers, pieces.text);
      pieces.pieces = {{0, pieces.text.text.size()}};
      pre_tokenize(parts.pre_tokenizers, pieces);
      for (const Piece& piece : pieces.pieces) {
        const auto word = std::string_view(pieces.text.text).substr(piece.begin, piece.end - piece.begin);
        const auto found = counts.find(word);
        if (found == counts.end()) {
          counts.emplace(word, 1);
        } else {
          ++found->second;
        }
      }
    }
  }
  if (counts.empty()) throw FormatError(fmt::format("{}: no words in it", name));
  std::vector<std::pair<std::string, int64_t>> words(counts.begin(), counts.end());
  std::sort(words.begin(), words.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return words;
}

/// The most frequent characters, in order of code point.
std::vector<char32_t> alphabet_of(const std::vector<std::pair<std::string, int64_t>>& words, size_t limit) {
  std::unordered_map<char32_t, int64_t> counts;
  for (const auto& [word, count] : words) {
    for (size_t at = 0; at < word.size();) counts[next_character(word, at)] += count;
  }
  std::vector<std::pair<char32_t, int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  sorted.resize(std::min(sorted.size(), limit));
  std::vector<char32_t> alphabet;
  for (const auto& [character, count] : sorted) alphabet.push_back(character);
  std::sort(alphabet.begin(), alphabet.end());
  return alphabet;
}

}  // namespace

Tokenizer train_bpe(std::span<const std::string> lines, const BpeOptions& options) {
  check_settings(options);
  const auto specials = static_cast<int32_t>(kSpecialTokens.size());

  TokenizerParts parts = common_parts();
  parts.normalizers = letter_steps(options.normalization, options.lowercase);
  // Spaces are told apart from "▁" nowhere after this, so that decoding gives back exactly the normalised
  // text.
  parts.normalizers.push_back(space_instead_of(Pattern::Kind::kLiteral, kSpaceMark));
  parts.normalizers.push_back(space_instead_of(Pattern::Kind::kWhitespaceRun, ""));
  parts.normalizers.emplace_back().kind = NormalizerStep::Kind::kStrip;
  PreTokenizerStep metaspace;
  metaspace.kind = PreTokenizerStep::Kind::kMetaspace;
  metaspace.replacement = kSpaceMark;
  parts.pre_tokenizers.push_back(metaspace);
  parts.pre_tokenizers.emplace_back().kind = PreTokenizerStep::Kind::kPunctuation;
  DecoderStep& decoder = parts.decoders.emplace_back();
  decoder.kind = DecoderStep::Kind::kMetaspace;
  decoder.replacement = kSpaceMark;

  const auto words = count_words(lines, parts, options.name);
  const auto alphabet =
      alphabet_of(words, std::min(options.alphabet_limit, options.vocabulary_size - specials));
  std::vector<std::string> tokens = kSpecialTokens;
  std::unordered_map<char32_t, int32_t> character_ids;
  for (const char32_t c : alphabet) {
    character_ids.emplace(c, static_cast<int32_t>(tokens.size()));
    append_utf8(tokens.emplace_back(), c);
  }
  std::vector<CountedWord> counted;
  counted.reserve(words.size());
  for (const auto& [word, count] : words) {
    CountedWord& entry = counted.emplace_back(CountedWord{{}, count});
    for (size_t at = 0; at < word.size();) {
      const auto found = character_ids.find(next_character(word, at));
      entry.symbols.push_back(found == character_ids.end() ? -1 : found->second);
    }
  }
  const auto merges =
      learn_merges(std::move(counted), tokens, specials, options.vocabulary_size, options.least_pair_count);

  parts.model.kind = TokenModel::Kind::kBpe;
  parts.model.fuse_unknown = true;
  for (const auto& [left, right] : merges) parts.model.merges.emplace_back(tokens[left], tokens[right]);
  for (size_t i = 0; i < tokens.size(); ++i)
    parts.model.vocabulary.emplace_back(tokens[i], static_cast<int32_t>(i));
  return Tokenizer(std::move(parts));
}

Tokenizer train_word_level(std::span<const std::string> lines, const WordLevelOptions& options) {
  check_settings(options);
  TokenizerParts parts = common_parts();
  parts.normalizers = letter_steps(options.normalization, options.lowercase);
  parts.pre_tokenizers.emplace_back().kind = PreTokenizerStep::Kind::kWhitespaceSplit;
  parts.model.kind = TokenModel::Kind::kWordLevel;
  for (const std::string& token : kSpecialTokens) {
    parts.model.vocabulary.emplace_back(token, static_cast<int32_t>(parts.model.vocabulary.size()));
  }
  for (const auto& [word, count] : count_words(lines, parts, options.name)) {
    const auto id = static_cast<int32_t>(parts.model.vocabulary.size());
    if (id >= options.vocabulary_size || count < options.least_count) break;
    // Normalisation can make a special token out of look-alikes; it keeps its own id.
    if (std::find(kSpecialTokens.begin(), kSpecialTokens.end(), word) == kSpecialTokens.end()) {
      parts.model.vocabulary.emplace_back(word, id);
    }
  }
  return Tokenizer(std::move(parts));
}

}  // namespace mh
