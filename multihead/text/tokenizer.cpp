#include "multihead/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"
#include "multihead/text/added_tokens.h"
#include "multihead/text/byte_level.h"
#include "multihead/text/decoder.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/normalizer.h"
#include "multihead/text/post_processor.h"
#include "multihead/text/pre_tokenizer.h"
#include "multihead/text/token_ids.h"
#include "multihead/text/tokenizer_json.h"
#include "multihead/text/tokenizer_parts.h"
#include "multihead/text/unicode.h"
#include "multihead/text/word_model.h"

namespace mh {
namespace {

/// Every token by its id: the model's and the added ones. Throws FormatError unless the ids are 0 … n-1.
std::vector<std::string> tokens_by_id(const TokenizerParts& parts) {
  TokenIds ids;
  for (const auto& [token, id] : parts.model.vocabulary) ids.add(token, id);
  for (const AddedToken& added : parts.added_tokens) ids.add_added(added.content, added.id);
  ids.check();
  std::vector<std::string> tokens(ids.size());
  for (const auto& [token, id] : parts.model.vocabulary) tokens[id] = token;
  for (const AddedToken& added : parts.added_tokens) tokens[added.id] = added.content;
  return tokens;
}

/// How many bytes of the text are a language code at its start: ">>deu<<", or 0.
size_t language_code(std::string_view text) {
  if (!text.starts_with(">>")) return 0;
  const size_t end = text.find("<<");
  return end == std::string_view::npos ? 0 : end + 2;
}

}  // namespace

struct Tokenizer::Pipeline {
  TokenizerParts parts;
  std::vector<std::string> tokens;
  Vocabulary added_ids;
  std::vector<bool> special;
  std::unordered_map<int32_t, std::string>
      normalized_contents;  ///< what decoding writes for added tokens normalised
  AddedTokenFinder before_normalizing{{}};
  AddedTokenFinder after_normalizing{{}};
  WordModel model;
  bool words_need_origin;  ///< a pre-tokenizer asks whether a word starts the text
  bool byte_level;         ///< tokens are written in byte_level_alphabet()

  explicit Pipeline(TokenizerParts given)
      : parts(std::move(given)),
        tokens(tokens_by_id(parts)),
        special(tokens.size(), false),
        model(parts.model) {
    check_steps(parts, tokens.size());
    std::vector<SoughtToken> before, after;
    for (const AddedToken& token : parts.added_tokens) {
      added_ids.emplace(token.content, token.id);
      if (token.special) special[token.id] = true;
      if (!token.in_text) continue;
      if (token.normalized) {
        AlignedText content = AlignedText::of(token.content, false);
        normalize(parts.normalizers, content);
        after.push_back({token, content.text});
        if (content.text != token.content) normalized_contents.emplace(token.id, content.text);
      } else {
        before.push_back({token, token.content});
      }
    }
    before_normalizing = AddedTokenFinder(std::move(before));
    after_normalizing = AddedTokenFinder(std::move(after));
    words_need_origin =
        std::any_of(parts.pre_tokenizers.begin(), parts.pre_tokenizers.end(),
                    [](const auto& step) { return step.prepend_scheme == PrependScheme::kFirst; });
    byte_level = std::any_of(parts.decoders.begin(), parts.decoders.end(), [](const DecoderStep& step) {
      return step.kind == DecoderStep::Kind::kByteLevel;
    });
  }

  /// Added tokens cut out, the rest normalised and cut into words.
  Pieces pieces_of(std::string_view text, bool tracked) const {
    if (first_invalid_utf8(text) != std::string_view::npos) {
      throw FormatError(fmt::format("text to encode: not UTF-8 at byte {}", first_invalid_utf8(text)));
    }
    tracked = tracked || words_need_origin;
    const AlignedText original = AlignedText::of(text, tracked);
    Pieces pieces;
    pieces.text.tracked = tracked;
    for (const Piece& segment : before_normalizing.find(text)) {
      const size_t start = pieces.text.text.size();
      if (segment.token >= 0) {
        pieces.text.append(original, segment.begin, segment.end);
        pieces.pieces.push_back({start, pieces.text.text.size(), segment.token});
        continue;
      }
      const size_t code =
          parts.language_code ? language_code(text.substr(segment.begin, segment.end - segment.begin)) : 0;
      if (code > 0) {
        pieces.text.append(original, segment.begin, segment.begin + code);
        const std::string_view token = text.substr(segment.begin, code);
        pieces.pieces.push_back(
            {start, start + code, model.id_of(token).value_or(model.unknown_id().value_or(-1))});
      }
      AlignedText normalized = original.slice(segment.begin + code, segment.end);
      normalize(parts.normalizers, normalized);
      pieces.text.append(normalized, 0, normalized.text.size());
      for (const Piece& piece : after_normalizing.find(normalized.text)) {
        pieces.pieces.push_back({start + code + piece.begin, start + code + piece.end, piece.token});
      }
    }
    pre_tokenize(parts.pre_tokenizers, pieces);
    return pieces;
  }

  Encoding encode(std::string_view text) const {
    const Pieces pieces = pieces_of(text, true);
    Encoding result;
    std::vector<Symbol> symbols;
    for (const Piece& piece : pieces.pieces) {
      const auto range = [&](size_t begin, size_t end) {  // bytes of the piece -> characters of the original
        const size_t last = piece.end - piece.begin;
        begin = std::min(begin, last - 1);
        end = std::clamp(end, begin + 1, last);
        return CharacterRange{pieces.text.origin[piece.begin + begin].first,
                              pieces.text.origin[piece.begin + end - 1].second};
      };
      if (piece.token >= 0) {
        result.ids.push_back(piece.token);
        result.tokens.push_back(pieces.text.text.substr(piece.begin, piece.end - piece.begin));
        result.offsets.push_back(range(0, piece.end - piece.begin));
        continue;
      }
      symbols.clear();
      model.tokenize(std::string_view(pieces.text.text).substr(piece.begin, piece.end - piece.begin),
                     symbols);
      size_t at = 0;
      for (const Symbol& symbol : symbols) {
        result.ids.push_back(symbol.id);
        const bool by_text = symbol.id == model.unknown_id() && model.names_unknown_by_text();
        result.tokens.push_back(by_text ? pieces.text.text.substr(piece.begin + at, symbol.length)
                                        : tokens[symbol.id]);
        result.offsets.push_back(range(at, at + symbol.length));
        if (!symbol.shared) at += symbol.length;
      }
    }
    return result;
  }
};

Tokenizer::Tokenizer(TokenizerParts parts) : pipeline_(std::make_shared<const Pipeline>(std::move(parts))) {}

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view file_name) {
  TokenizerParts parts = read_tokenizer_json(json, file_name);
  try {
    return Tokenizer(std::move(parts));
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}: {}", file_name, error.what()));
  }
}

std::string Tokenizer::to_json() const {
  return write_tokenizer_json(pipeline_->parts);
}

std::map<std::string, std::string> Tokenizer::files(const std::string& json) const {
  if (!pipeline_->parts.files.empty()) return pipeline_->parts.files;
  return {{json, to_json()}};
}

Encoding Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  Encoding encoding = pipeline_->encode(text);
  post_process(pipeline_->parts.post_processors, add_special_tokens, encoding);
  return encoding;
}

std::vector<int32_t> Tokenizer::encode_ids(std::string_view text, bool add_special_tokens) const {
  const Pieces pieces = pipeline_->pieces_of(text, false);
  std::vector<int32_t> ids;
  std::vector<Symbol> symbols;
  for (const Piece& piece : pieces.pieces) {
    if (piece.token >= 0) {
      ids.push_back(piece.token);
      continue;
    }
    symbols.clear();
    pipeline_->model.tokenize(std::string_view(pieces.text.text).substr(piece.begin, piece.end - piece.begin),
                              symbols);
    for (const Symbol& symbol : symbols) ids.push_back(symbol.id);
  }
  if (add_special_tokens) post_process_ids(pipeline_->parts.post_processors, ids);
  return ids;
}

bool Tokenizer::joins_pairs() const {
  return pair_template(pipeline_->parts.post_processors) != nullptr;
}

TokenPair Tokenizer::joined(std::span<const int32_t> first, std::span<const int32_t> second) const {
  const PostProcessorStep* step = pair_template(pipeline_->parts.post_processors);
  if (step == nullptr) throw UsageError("this tokenizer has no template for two texts; give it one text");
  return join_pair(*step, first, second);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  for (const int32_t id : ids) token_of(id);
  return decode_known(ids, skip_special_tokens);
}

std::string Tokenizer::decode_known(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const int32_t id : ids) {
    if (id < 0 || id >= size() || (skip_special_tokens && pipeline_->special[id])) continue;
    const auto normalized = pipeline_->normalized_contents.find(id);
    pieces.push_back(normalized == pipeline_->normalized_contents.end() ? pipeline_->tokens[id]
                                                                        : normalized->second);
  }
  return decode_pieces(pipeline_->parts.decoders, std::move(pieces));
}

int32_t Tokenizer::size() const {
  return static_cast<int32_t>(pipeline_->tokens.size());
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  const auto added = pipeline_->added_ids.find(token);
  return added != pipeline_->added_ids.end() ? std::optional(added->second) : pipeline_->model.id_of(token);
}

const std::string& Tokenizer::token_of(int32_t id) const {
  if (id < 0 || id >= size()) throw UsageError(fmt::format("token id {}: expected 0 to {}", id, size() - 1));
  return pipeline_->tokens[id];
}

std::string Tokenizer::shown(int32_t id) const {
  const std::string& token = token_of(id);
  return pipeline_->byte_level ? shown_piece(token) : printable(token);
}

std::optional<int32_t> Tokenizer::unknown_id() const {
  return pipeline_->model.unknown_id();
}

std::optional<int32_t> Tokenizer::truncation() const {
  const auto& truncation = pipeline_->parts.truncation;
  return truncation ? std::optional(truncation->max_length) : std::nullopt;
}

TextEnd Tokenizer::cut_end() const {
  const TokenizerParts& parts = pipeline_->parts;
  if (parts.cut) return *parts.cut;
  return parts.truncation && parts.truncation->keeps_the_end ? TextEnd::kStart : TextEnd::kEnd;
}

bool Tokenizer::gives_types() const {
  return pipeline_->parts.gives_types;
}

}  // namespace mh
