#include "multihead/text/word_model.h"

#include <fmt/format.h>

#include <mutex>

#include "multihead/base/error.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {
// Words beyond these are split anew each time: nothing a text holds can make the memory grow without end.
constexpr size_t kMostKnownWords = 1 << 17;
constexpr size_t kLongestKnownWord = 128;
}  // namespace

WordModel::WordModel(const TokenModel& model)
    : kind_(model.kind),
      prefix_(model.continuing_subword_prefix),
      suffix_(model.end_of_word_suffix),
      fuse_unknown_(model.fuse_unknown),
      byte_fallback_(model.byte_fallback),
      ignore_merges_(model.ignore_merges),
      looks_up_unknown_(model.looks_up_unknown),
      sentencepiece_(model.sentencepiece) {
  vocabulary_.reserve(model.vocabulary.size());
  for (const auto& [token, id] : model.vocabulary) vocabulary_.emplace(token, id);
  if (model.unknown_token) unknown_ = id_of(*model.unknown_token);

  if (kind_ == TokenModel::Kind::kWordPiece) word_piece_.emplace(model);
  if (kind_ == TokenModel::Kind::kUnigram) unigram_.emplace(model);
  if (kind_ == TokenModel::Kind::kScoredBpe) scored_bpe_.emplace(model);
  for (const ScoredPiece& piece : model.pieces) {
    if (!model.sentencepiece && piece.text == model.unknown_token) {
      unknown_piece_ = static_cast<int32_t>(piece_ids_.size());
    }
    piece_ids_.push_back(piece.id);
  }

  for (size_t i = 0; i < model.merges.size(); ++i) {
    const auto& [left, right] = model.merges[i];
    const MergeIds ids =
        merge_ids(left, right, prefix_, i, [&](std::string_view token) { return id_of(token); });
    merges_.add(ids.left, ids.right, {static_cast<int32_t>(i), ids.merged});
  }
}

std::optional<int32_t> WordModel::id_of(std::string_view token) const {
  const auto found = vocabulary_.find(token);
  return found == vocabulary_.end() ? std::nullopt : std::optional(found->second);
}

void WordModel::tokenize(std::string_view word, std::vector<Symbol>& pieces) const {
  if (kind_ == TokenModel::Kind::kWordLevel) {
    if (const auto id = id_of(word)) {
      pieces.push_back({*id, static_cast<uint32_t>(word.size())});
    } else {
      append_unknown_word(word, pieces);
    }
    return;
  }
  if (word_piece_) {
    if (!word_piece_->split(word, pieces)) append_unknown_word(word, pieces);
    return;
  }
  if (unigram_ || scored_bpe_) return append_scored(word, pieces);
  {
    std::shared_lock lock(mutex_);
    if (const auto found = known_words_.find(word); found != known_words_.end()) {
      pieces.insert(pieces.end(), found->second.begin(), found->second.end());
      return;
    }
  }
  std::vector<Symbol> symbols;
  split_word(word, symbols);
  pieces.insert(pieces.end(), symbols.begin(), symbols.end());
  if (word.size() <= kLongestKnownWord) {
    std::unique_lock lock(mutex_);
    if (known_words_.size() < kMostKnownWords) known_words_.emplace(word, std::move(symbols));
  }
}

void WordModel::append_unknown_word(std::string_view word, std::vector<Symbol>& pieces) const {
  if (!unknown_) {
    throw FormatError(
        fmt::format("the tokenizer knows neither the word {} nor an unknown token", in_quotes(word)));
  }
  pieces.push_back({*unknown_, static_cast<uint32_t>(word.size())});
}

void WordModel::append_scored(std::string_view text, std::vector<Symbol>& pieces) const {
  size_t at = 0;
  size_t unknown_length = 0;  // of unknown characters before `at`
  const auto flush_unknown = [&] {
    if (unknown_length > 0) append_unknown_run(text.substr(at - unknown_length, unknown_length), pieces);
    unknown_length = 0;
  };
  for (const auto& [piece, length] : unigram_ ? unigram_->best_parts(text) : scored_bpe_->parts(text)) {
    if (piece < 0 || piece == unknown_piece_) {
      unknown_length += length;
    } else {
      flush_unknown();
      pieces.push_back({piece_ids_[piece], length});
    }
    at += length;
  }
  flush_unknown();
}

void WordModel::append_unknown_run(std::string_view run, std::vector<Symbol>& pieces) const {
  const auto length = static_cast<uint32_t>(run.size());
  // SentencePiece writes bytes before anyone looks for the run, and each of them may be unknown to a
  // vocab.json.
  const auto id = looks_up_unknown_ && !(sentencepiece_ && byte_fallback_) ? id_of(run) : std::nullopt;
  if (id) {
    pieces.push_back({*id, length});
    return;
  }
  const size_t before = pieces.size();
  if (!byte_fallback_ || !append_bytes(run, pieces)) return append_unknown_word(run, pieces);
  for (size_t i = before; i < pieces.size(); ++i) {
    pieces[i].length = length;
    pieces[i].shared = i + 1 < pieces.size();
  }
}

void WordModel::split_word(std::string_view word, std::vector<Symbol>& symbols) const {
  if (ignore_merges_) {
    if (const auto id = id_of(word)) {
      symbols.push_back({*id, static_cast<uint32_t>(word.size())});
      return;
    }
  }
  append_characters(word, symbols);
  merges_.merge_all(symbols);
}

void WordModel::append_characters(std::string_view word, std::vector<Symbol>& symbols) const {
  uint32_t unknown_length = 0;  // of unknown characters not yet appended
  const auto flush_unknown = [&] {
    if (unknown_length > 0) symbols.push_back({*unknown_, unknown_length});
    unknown_length = 0;
  };
  std::string affixed;
  for (size_t at = 0; at < word.size();) {
    const size_t length = utf8_length(word[at]);
    std::string_view character = word.substr(at, length);
    const bool first = at == 0;
    at += length;
    const bool last = at == word.size();
    if ((!first && !prefix_.empty()) || (last && !suffix_.empty())) {
      affixed.assign(first ? "" : prefix_).append(character).append(last ? suffix_ : "");
      character = affixed;
    }
    if (const auto id = id_of(character)) {
      flush_unknown();
      symbols.push_back({*id, static_cast<uint32_t>(length)});
    } else if (!(byte_fallback_ && append_bytes(character, symbols)) && unknown_) {
      if (!fuse_unknown_) flush_unknown();
      unknown_length += static_cast<uint32_t>(length);
    }
  }
  flush_unknown();
}

bool WordModel::append_bytes(std::string_view character, std::vector<Symbol>& symbols) const {
  const size_t before = symbols.size();
  for (const char byte : character) {
    auto id = id_of(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)));
    if (!id && sentencepiece_) id = unknown_;
    if (!id) {
      symbols.resize(before);
      return false;
    }
    symbols.push_back({*id, 1});
  }
  return true;
}

}  // namespace mh
