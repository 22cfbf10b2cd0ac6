#include "multihead/text/sentencepiece_model.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/text/character_map.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/piece_pairs.h"
#include "multihead/text/protobuf_reader.h"

namespace mh {
namespace {

// Numbers of fields and values are those of sentencepiece_model.proto.
enum class PieceType : uint64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

constexpr size_t kMostPieces = 1 << 19;  // twice as many as the largest vocabularies in use have

void read_piece(std::string_view message, std::string_view name, TokenizerParts& parts) {
  ProtobufReader reader(message, name);
  ProtobufReader::Field field;
  if (parts.model.vocabulary.size() == kMostPieces)
    reader.fail(fmt::format("the SentencePiece model has more than {} pieces", kMostPieces));
  const auto id = static_cast<int32_t>(parts.model.vocabulary.size());
  ScoredPiece piece{.text = {}, .score = 0, .id = id};
  auto type = PieceType::kNormal;
  while (reader.next(field)) {
    if (field.number == 1) piece.text = reader.text(field);
    if (field.number == 2) piece.score = reader.real(field);
    if (field.number == 3) type = static_cast<PieceType>(reader.number(field));
  }
  if (piece.text.empty()) reader.fail(fmt::format("piece {} of the SentencePiece model has no text", id));
  if (!std::isfinite(piece.score))
    reader.fail(fmt::format("the score of {} is no number", in_quotes(piece.text)));
  parts.model.vocabulary.emplace_back(piece.text, id);
  switch (type) {
    case PieceType::kUserDefined:
      piece.user_defined = true;
      parts.normalizers[0].kept.push_back(piece.text);
      [[fallthrough]];
    case PieceType::kNormal:
      parts.model.pieces.push_back(std::move(piece));
      return;
    case PieceType::kUnknown:
      if (parts.model.unknown_token) reader.fail("the SentencePiece model has two unknown pieces");
      parts.model.unknown_token = piece.text;
      return;
    case PieceType::kControl:
      parts.added_tokens.push_back({.id = id, .content = piece.text, .in_text = false});
      return;
    case PieceType::kByte:
      return;  // found by name
    default:
      reader.fail(fmt::format("{} is a piece of type {}, which is not supported", in_quotes(piece.text),
                              static_cast<uint64_t>(type)));
  }
}

void read_trainer(std::string_view message, std::string_view name, TokenizerParts& parts) {
  ProtobufReader reader(message, name);
  ProtobufReader::Field field;
  while (reader.next(field)) {
    if (field.number == 3) {
      const uint64_t type = reader.number(field);
      if (type != 1 && type != 2) {
        reader.fail(fmt::format(
            "a SentencePiece model of type {} is not supported; expected 1 (Unigram) or 2 (BPE)", type));
      }
      parts.model.kind = type == 1 ? TokenModel::Kind::kUnigram : TokenModel::Kind::kScoredBpe;
    }
    if (field.number == 24 && reader.flag(field)) reader.fail("treat_whitespace_as_suffix is not supported");
    if (field.number == 35) parts.model.byte_fallback = reader.flag(field);
    if (field.number == 44) parts.decoders[0].content = reader.text(field);
  }
}

void read_normalizer(std::string_view message, std::string_view name, NormalizerStep& step) {
  ProtobufReader reader(message, name);
  ProtobufReader::Field field;
  while (reader.next(field)) {
    if (field.number == 2) step.character_map = reader.bytes(field);
    if (field.number == 3) step.add_dummy_prefix = reader.flag(field);
    if (field.number == 4) step.remove_extra_whitespaces = reader.flag(field);
    if (field.number == 5) step.escape_whitespaces = reader.flag(field);
  }
  try {
    CharacterMap::check(step.character_map);
  } catch (const FormatError& error) {
    reader.fail(error.what());
  }
}

}  // namespace

TokenizerParts read_sentencepiece_model(std::string_view bytes, std::string_view name) {
  TokenizerParts parts;
  parts.normalizers.emplace_back().kind = NormalizerStep::Kind::kSentencePiece;
  parts.decoders.emplace_back().kind = DecoderStep::Kind::kSentencePiece;
  parts.decoders[0].content = " \u2047 ";
  parts.model.kind = TokenModel::Kind::kUnigram;
  parts.model.sentencepiece = true;
  parts.model.looks_up_unknown = false;
  ProtobufReader reader(bytes, name);
  ProtobufReader::Field field;
  while (reader.next(field)) {
    if (field.number == 1) read_piece(reader.bytes(field), name, parts);
    if (field.number == 2) read_trainer(reader.bytes(field), name, parts);
    if (field.number == 3) read_normalizer(reader.bytes(field), name, parts.normalizers[0]);
    if (field.number == 5) {
      NormalizerStep denormalizer;
      read_normalizer(reader.bytes(field), name, denormalizer);
      if (!denormalizer.character_map.empty())
        reader.fail("a denormalizer with a character map is not supported");
    }
  }
  if (parts.model.pieces.empty()) reader.fail("not a SentencePiece model: it has no pieces");
  if (!parts.model.unknown_token) reader.fail("the SentencePiece model has no unknown piece");
  const NormalizerStep& normalizer = parts.normalizers[0];
  DecoderStep& decoder = parts.decoders[0];
  decoder.unknown = *parts.model.unknown_token;
  decoder.trims_start = normalizer.add_dummy_prefix || normalizer.remove_extra_whitespaces;
  decoder.trims_starts = normalizer.remove_extra_whitespaces;
  return parts;
}

TokenizerParts merged_pieces(const TokenizerParts& parts, MergeOrder order) {
  if (parts.model.kind != TokenModel::Kind::kScoredBpe)
    throw FormatError("a SentencePiece model of type 1 (Unigram) is not supported here; expected 2 (BPE)");
  TokenizerParts result;
  result.added_tokens = parts.added_tokens;
  for (AddedToken& token : result.added_tokens) token.in_text = true;
  std::vector<ScoredPiece> pieces;
  for (const ScoredPiece& piece : parts.model.pieces) {
    if (piece.user_defined) {
      result.added_tokens.push_back({.id = piece.id, .content = piece.text, .special = false});
    } else if (order == MergeOrder::kByScores) {
      pieces.push_back(piece);
    }
  }
  if (order == MergeOrder::kByIds) {
    for (const auto& [text, id] : parts.model.vocabulary)
      pieces.push_back({.text = text, .score = -static_cast<double>(id), .id = id});
  }
  result.model.vocabulary = parts.model.vocabulary;
  result.model.unknown_token = parts.model.unknown_token;
  result.model.byte_fallback = parts.model.byte_fallback;
  result.model.merges = merges_of_scores(pieces, FirstMerge::kOfShortestLeft);
  return result;
}

void use_vocabulary(TokenizerParts& parts, std::vector<std::pair<std::string, int32_t>> vocabulary,
                    std::string_view unknown) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (const auto& [token, id] : vocabulary) ids.emplace(token, id);
  const auto found = ids.find(unknown);
  if (found == ids.end()) {
    throw FormatError(fmt::format("the vocabulary lacks the unknown token {}", in_quotes(unknown)));
  }
  for (ScoredPiece& piece : parts.model.pieces) {
    const auto place = ids.find(piece.text);
    piece.id = place == ids.end() ? found->second : place->second;
  }
  parts.model.unknown_token = unknown;
  parts.decoders[0].unknown = unknown;
  parts.model.looks_up_unknown = true;
  parts.added_tokens.clear();
  parts.model.vocabulary = std::move(vocabulary);
}

}  // namespace mh
