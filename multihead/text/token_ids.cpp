#include "multihead/text/token_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "multihead/base/error.h"
#include "multihead/text/in_quotes.h"

namespace mh {
namespace {

uint64_t hash_of(std::string_view token) {
  const uint64_t hash = std::hash<std::string_view>{}(token);
  return hash == 0 ? 1 : hash;
}
void check_sign(std::string_view token, int32_t id) {
  if (id < 0) throw FormatError(fmt::format("the id {} of {} is below 0", id, in_quotes(token)));
}
int32_t plain(int32_t stored) {
  return stored < 0 ? ~stored : stored;
}

}  // namespace

TokenIds::Place TokenIds::place_of(uint64_t hash) const {
  const size_t last = hashes_.size() - 1;  // the size is a power of two
  for (size_t slot = hash & last;; slot = (slot + 1) & last) {
    if (hashes_[slot] == hash) return {slot, true};
    if (hashes_[slot] == 0) return {slot, false};
  }
}

void TokenIds::insert(std::string_view token, uint64_t hash, int32_t id, bool of_model) {
  if (size_ == kMostTokens) throw FormatError(fmt::format("model.vocab: more than {} tokens", kMostTokens));
  if (4 * (size_ + 1) > 3 * hashes_.size()) {
    std::vector<uint64_t> hashes(std::max<size_t>(64, 2 * hashes_.size()));
    std::vector<int32_t> ids(hashes.size());
    hashes.swap(hashes_);
    ids.swap(ids_);
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (hashes[i] == 0) continue;
      const size_t slot = place_of(hashes[i]).slot;
      hashes_[slot] = hashes[i];
      ids_[slot] = ids[i];
    }
  }
  const size_t slot = place_of(hash).slot;
  hashes_[slot] = hash;
  ids_[slot] = of_model ? id : ~id;
  ++size_;
  if (id > largest_) {
    largest_ = id;
    largest_token_ = token.substr(0, 200);
  }
  const auto place = static_cast<size_t>(id);
  if (place >= kMostTokens) return;  // leaves a hole
  if (place >= taken_.size()) taken_.resize(place + 1);
  if (taken_[place])
    throw FormatError(fmt::format("two tokens have id {}: {} and one before it", id, in_quotes(token)));
  taken_[place] = true;
}

void TokenIds::add(std::string_view token, int32_t id) {
  check_sign(token, id);
  const uint64_t hash = hash_of(token);
  const Place place = size_ == 0 ? Place{0, false} : place_of(hash);
  if (!place.found) return insert(token, hash, id, true);
  int32_t& stored = ids_[place.slot];
  if (stored >= 0)
    throw FormatError(fmt::format("model.vocab: the token {} is there twice", in_quotes(token)));
  if (plain(stored) != id)
    throw FormatError(fmt::format("added_tokens: {} has id {} here and id {} elsewhere", in_quotes(token),
                                  plain(stored), id));
  stored = id;
}

void TokenIds::add_added(std::string_view token, int32_t id) {
  if (token.empty()) throw FormatError("added_tokens: a token without content");
  check_sign(token, id);
  const uint64_t hash = hash_of(token);
  const Place place = size_ == 0 ? Place{0, false} : place_of(hash);
  if (!place.found) return insert(token, hash, id, false);
  if (const int32_t other = plain(ids_[place.slot]); other != id)
    throw FormatError(
        fmt::format("added_tokens: {} has id {} here and id {} elsewhere", in_quotes(token), id, other));
}

void TokenIds::check() const {
  if (largest_ >= 0 && static_cast<size_t>(largest_) >= size_)
    throw FormatError(fmt::format("ids of {} tokens must be 0 to {} without holes; {} has id {}", size_,
                                  size_ - 1, in_quotes(largest_token_), largest_));
}

std::optional<int32_t> TokenIds::find(std::string_view token) const {
  if (size_ == 0) return std::nullopt;
  const Place place = place_of(hash_of(token));
  if (!place.found || ids_[place.slot] < 0) return std::nullopt;
  return ids_[place.slot];
}

}  // namespace mh
