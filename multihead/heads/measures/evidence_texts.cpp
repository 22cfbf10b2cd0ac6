#include "multihead/heads/measures/evidence_texts.h"

#include <algorithm>

#include "multihead/base/thread_pool.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

int32_t count_characters(std::string_view text) {
  int32_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) next_character(text, at);
  return count;
}

/// Characters [begin, end) of a text, without the white space around them.
struct TrimmedPart {
  int32_t begin = 0, end = 0;
  std::string text = {};
};
TrimmedPart trimmed_part(std::string_view text, int32_t begin, int32_t end) {
  TrimmedPart part{.begin = begin, .end = begin};
  std::string space;  // behind what is not
  int32_t character = 0;
  for (size_t at = 0; at < text.size() && character < end; ++character) {
    const size_t from = at;
    const bool is_space = is_whitespace(next_character(text, at));
    if (character < begin) continue;
    if (is_space && part.text.empty()) {
      part.begin = part.end = character + 1;
    } else if (is_space) {
      space += text.substr(from, at - from);
    } else {
      part.text += space + std::string(text.substr(from, at - from));
      part.end = character + 1;
      space.clear();
    }
  }
  if (part.text.empty()) part = {.begin = begin, .end = end};
  return part;
}

using Offsets = std::vector<std::pair<int32_t, int32_t>>;

/// A pair's second offsets count from the beginning of the second text.
void move_second_offsets(Offsets& offsets, int32_t by) {
  bool second = false;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const bool special = offsets[i] == std::pair(0, 0);
    second = second || (special && i > 0);
    if (second && !special) offsets[i] = {offsets[i].first + by, offsets[i].second + by};
  }
}

EvidenceSide side_of(const InspectedTexts& read, size_t i, const std::string& text) {
  EvidenceSide side{.text = std::make_shared<const std::string>(text), .offsets = read.offsets[i]};
  if (!read.words.empty()) side.words = read.words[i];
  return side;
}

EvidenceSide side_of_pair(const InspectedTexts& read, size_t i, const std::string& first,
                          const std::string& second) {
  EvidenceSide side = side_of(read, i, first + kBetweenPair + second);
  move_second_offsets(side.offsets, count_characters(first) + count_characters(kBetweenPair));
  return side;
}

EvidenceSide side_of_tokens(const std::vector<int32_t>& ids, const EvidenceTexts::Label& label) {
  EvidenceSide side;
  std::string text;
  int32_t characters = 0;
  for (const int32_t id : ids) {
    if (!text.empty()) {
      text += ' ';
      ++characters;
    }
    const std::string token = label ? label(id) : std::to_string(id);
    text += token;
    const int32_t begin = characters;
    characters += count_characters(token);
    side.offsets.emplace_back(begin, characters);
  }
  side.text = std::make_shared<const std::string>(std::move(text));
  return side;
}

void number_tokens(EvidenceSide& side, const std::vector<int32_t>& ids, DistinctTokens& tokens) {
  side.numbers.reserve(ids.size());
  for (size_t t = 0; t < ids.size(); ++t) {
    const bool special = side.offsets[t] == std::pair(0, 0);
    side.has_special = side.has_special || special;
    side.numbers.push_back(special ? -1 : tokens.add(ids[t]));
  }
}

}  // namespace

int32_t DistinctTokens::add(int32_t id) {
  const auto [found, is_new] = number_of.try_emplace(id, static_cast<int32_t>(ids.size()));
  if (is_new) {
    ids.push_back(id);
    counts.push_back(0);
  }
  ++counts[static_cast<size_t>(found->second)];
  return found->second;
}

EvidenceToken EvidenceSide::place_of(size_t token) const {
  const auto& [begin, end] = offsets[token];
  const TrimmedPart own = trimmed_part(*text, begin, end);
  EvidenceToken place{.begin = own.begin, .end = own.end};
  if (words.empty() || words[token] < 0) return place;
  int32_t first = begin, last = end;
  for (size_t t = 0; t < words.size(); ++t) {
    if (words[t] != words[token]) continue;
    first = std::min(first, offsets[t].first);
    last = std::max(last, offsets[t].second);
  }
  place.word = trimmed_part(*text, first, last).text;
  return place;
}

void EvidenceTexts::begin(const CorpusBlock& block) {
  causal_ = block.causal;
  one_text_ = block.target.ids.empty();
  lines_ = block.lines;
  const HeadsText& text = block.text;
  sources_.assign(block.source.ids.size(), {});
  targets_.assign(block.target.ids.size(), {});
  parallel_for(block.sentences(), [&](int64_t sentence) {
    const auto i = static_cast<size_t>(sentence);
    sources_[i] = text.pairs.empty() ? side_of(block.source, i, text.sources[i])
                                     : side_of_pair(block.source, i, text.sources[i], text.pairs[i]);
    if (targets_.empty()) return;
    targets_[i] = text.targets.empty() ? side_of_tokens(block.target.ids[i], target_label_)
                                       : side_of(block.target, i, text.targets[i]);
  });
  // In the order of the corpus: the numbers do not depend on threads.
  for (size_t i = 0; i < sources_.size(); ++i)
    number_tokens(sources_[i], block.source.ids[i], source_tokens_);
  for (size_t i = 0; i < targets_.size(); ++i)
    number_tokens(targets_[i], block.target.ids[i], target_tokens_);
}

bool EvidenceTexts::on_source(AttentionKind kind, bool key) const {
  return one_text_ || kind == AttentionKind::kEncoderSelf || (key && kind == AttentionKind::kCross);
}

/// What the decoder of an encoder-decoder reads begins with a start token.
int EvidenceTexts::shift_of(AttentionKind kind) const {
  return kind == AttentionKind::kDecoderSelf && !causal_ ? 1 : 0;
}

EvidencePositions EvidenceTexts::queries(AttentionKind kind, size_t i) const {
  return {.side = on_source(kind, false) ? &sources_[i] : &targets_[i], .shift = shift_of(kind)};
}

EvidencePositions EvidenceTexts::keys(AttentionKind kind, size_t i) const {
  return {.side = on_source(kind, true) ? &sources_[i] : &targets_[i], .shift = shift_of(kind)};
}

const DistinctTokens& EvidenceTexts::query_tokens(AttentionKind kind) const {
  return on_source(kind, false) ? source_tokens_ : target_tokens_;
}

const DistinctTokens& EvidenceTexts::key_tokens(AttentionKind kind) const {
  return on_source(kind, true) ? source_tokens_ : target_tokens_;
}

}  // namespace mh
