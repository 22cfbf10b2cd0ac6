#include "multihead/generate/text_stream.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace mh {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";
// A character of UTF-8 has at most four bytes, so at most three wait for the last.
constexpr size_t kMostWaiting = 3;

size_t replacements_at_end(std::string_view text) {
  size_t count = 0;
  for (; text.ends_with(kReplacement); ++count) text.remove_suffix(kReplacement.size());
  return count;
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const int32_t> before)
    : tokenizer_(tokenizer),
      tokens_(before.begin(), before.end()),
      fresh_(tokens_.size()),
      shown_(tokenizer.decode_known(tokens_)) {}

std::string TextStream::add(int32_t token) {
  tokens_.push_back(token);
  return next(false);
}

std::string TextStream::finish() {
  return next(true);
}

std::string TextStream::next(bool is_last) {
  const std::span<const int32_t> tokens(tokens_);
  const std::string text = tokenizer_.decode_known(tokens);
  std::string piece;
  size_t waiting = 0;
  if (text.starts_with(shown_)) {
    piece = text.substr(shown_.size());
    if (!is_last) waiting = std::min(replacements_at_end(piece), kMostWaiting);
  } else {
    // A ByteFallback decoder writes a run of bytes as U+FFFD until the whole run is valid, also those that
    // appeared as characters before.
    piece = tokenizer_.decode_known(tokens.subspan(fresh_));
    if (!is_last && tokens_.size() - fresh_ <= kMostWaiting && piece.ends_with(kReplacement)) return "";
  }
  piece.resize(piece.size() - waiting * kReplacement.size());
  if (waiting > 0 || piece.empty()) {
    shown_ += piece;
    return piece;
  }
  // All of it appeared: the tokens before these are not needed any more.
  tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(fresh_));
  fresh_ = tokens_.size();
  shown_ = tokenizer_.decode_known(tokens_);
  return piece;
}

}  // namespace mh
