#include "multihead/text/decoder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "multihead/base/utf8.h"
#include "multihead/text/byte_level.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (text.find(from) == std::string::npos) return;
  std::string result;
  size_t begin = 0;
  for (size_t at; (at = text.find(from, begin)) != std::string::npos; begin = at + from.size()) {
    result.append(text, begin, at - begin).append(to);
  }
  text = result.append(text, begin);
}

void from_metaspace(const DecoderStep& step, std::vector<std::string>& pieces) {
  const std::string_view first = step.prepend_scheme == PrependScheme::kNever ? " " : "";
  for (size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], step.replacement, i == 0 ? first : " ");
}

void from_byte_level(std::vector<std::string>& pieces) {
  std::string bytes;
  for (const std::string& piece : pieces) bytes += bytes_of_piece(piece).value_or(piece);
  pieces = {to_valid_utf8(bytes)};
}

void from_end_of_word(const DecoderStep& step, std::vector<std::string>& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i)
    replace_all(pieces[i], step.affix, i + 1 < pieces.size() ? " " : "");
}

void from_word_piece(const DecoderStep& step, std::vector<std::string>& pieces) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kCleanup = {{{" .", "."},
                                                                                       {" ?", "?"},
                                                                                       {" !", "!"},
                                                                                       {" ,", ","},
                                                                                       {" ' ", "'"},
                                                                                       {" n't", "n't"},
                                                                                       {" 'm", "'m"},
                                                                                       {" do not", " don't"},
                                                                                       {" 's", "'s"},
                                                                                       {" 've", "'ve"},
                                                                                       {" 're", "'re"}}};
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) {
      if (pieces[i].starts_with(step.affix)) {
        pieces[i].erase(0, step.affix.size());
      } else {
        pieces[i] = ' ' + pieces[i];
      }
    }
    if (!step.cleanup) continue;
    for (const auto& [from, to] : kCleanup) replace_all(pieces[i], from, to);
  }
}

/// The byte that "<0xE4>" names.
std::optional<char> named_byte(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  unsigned value = 0;
  const char* end = piece.data() + 5;
  const auto [stop, error] = std::from_chars(piece.data() + 3, end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return static_cast<char>(value);
}

/// Bytes of the character that `lead` starts; 1 for one that starts none.
size_t lead_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

void from_byte_fallback(std::vector<std::string>& pieces) {
  std::vector<std::string> result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (first_invalid_utf8(bytes) == std::string_view::npos) {
      result.push_back(bytes);
    } else {
      result.insert(result.end(), bytes.size(), "\uFFFD");
    }
    bytes.clear();
  };
  for (std::string& piece : pieces) {
    if (const auto byte = named_byte(piece)) {
      bytes += *byte;
    } else {
      flush();
      result.push_back(std::move(piece));
    }
  }
  flush();
  pieces = std::move(result);
}

void strip_pieces(const DecoderStep& step, std::vector<std::string>& pieces) {
  for (std::string& piece : pieces) {
    std::string_view rest = piece;
    for (int32_t i = 0; i < step.start && rest.starts_with(step.content); ++i)
      rest.remove_prefix(step.content.size());
    for (int32_t i = 0; i < step.stop && rest.ends_with(step.content); ++i)
      rest.remove_suffix(step.content.size());
    piece = std::string(rest);
  }
}

/// The text without the whitespace at its ends.
std::string trimmed(std::string_view text) {
  size_t begin = text.size(), end = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    if (is_whitespace(next_character(text, at))) continue;
    begin = std::min(begin, start);
    end = at;
  }
  return std::string(text.substr(begin, end > begin ? end - begin : 0));
}

/// As SentencePiece decodes: bytes, U+2581 for spaces, no space before the text, the unknown token's sign.
void from_sentence_piece(const DecoderStep& step, std::vector<std::string>& pieces) {
  std::string text, bytes;
  const auto flush = [&] {
    for (size_t at = 0; at < bytes.size();) {  // each byte that starts no character becomes U+FFFD
      size_t length = std::min(lead_length(bytes[at]), bytes.size() - at);
      if (first_invalid_utf8(std::string_view(bytes).substr(at, length)) != std::string_view::npos)
        length = 0;
      text += length > 0 ? bytes.substr(at, length) : "\uFFFD";
      at += std::max<size_t>(length, 1);
    }
    bytes.clear();
  };
  bool starts = step.trims_start;
  for (const std::string& piece : pieces) {
    if (const auto byte = named_byte(piece)) {
      bytes += *byte;
      continue;
    }
    flush();
    if (piece == step.unknown) {
      text += step.content;
      continue;
    }
    std::string_view rest = piece;
    starts = starts && text.empty();
    if (starts && rest.starts_with(step.replacement)) {
      rest.remove_prefix(step.replacement.size());
      starts = step.trims_starts;
    }
    std::string shown(rest);
    replace_all(shown, step.replacement, " ");
    text += shown;
  }
  flush();
  pieces = {step.trims_ends ? trimmed(text) : text};
}

std::string joined(const std::vector<std::string>& pieces, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) text.append(i > 0 ? separator : "").append(pieces[i]);
  return text;
}

}  // namespace

std::string decode_pieces(const std::vector<DecoderStep>& steps, std::vector<std::string> pieces) {
  using Kind = DecoderStep::Kind;
  if (steps.empty()) return joined(pieces, " ");
  for (const DecoderStep& step : steps) {
    switch (step.kind) {
      case Kind::kMetaspace:
        from_metaspace(step, pieces);
        break;
      case Kind::kByteLevel:
        from_byte_level(pieces);
        break;
      case Kind::kBpe:
        from_end_of_word(step, pieces);
        break;
      case Kind::kWordPiece:
        from_word_piece(step, pieces);
        break;
      case Kind::kSentencePiece:
        from_sentence_piece(step, pieces);
        break;
      case Kind::kFuse:
        pieces = {joined(pieces, "")};
        break;
      case Kind::kByteFallback:
        from_byte_fallback(pieces);
        break;
      case Kind::kStrip:
        strip_pieces(step, pieces);
        break;
      case Kind::kReplace:
        for (std::string& piece : pieces) replace_all(piece, step.pattern.literal, step.content);
        break;
    }
  }
  return joined(pieces, "");
}

}  // namespace mh
