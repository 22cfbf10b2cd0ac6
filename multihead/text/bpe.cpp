#include "multihead/text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/text/in_quotes.h"

namespace mh {

MergeIds merge_ids(std::string_view left, std::string_view right, std::string_view prefix, size_t rank,
                   const std::function<std::optional<int32_t>(std::string_view)>& find) {
  const auto known = [&](std::string_view token) {
    const auto id = find(token);
    if (!id)
      throw FormatError(fmt::format("model.merges[{}]: {} is not in model.vocab", rank, in_quotes(token)));
    return *id;
  };
  const int32_t left_id = known(left), right_id = known(right);
  if (!right.starts_with(prefix)) {
    throw FormatError(fmt::format("model.merges[{}]: {} lacks the continuing_subword_prefix {}", rank,
                                  in_quotes(right), in_quotes(prefix)));
  }
  return {left_id, right_id, known(std::string(left).append(right.substr(prefix.size())))};
}

void MergeTable::add(int32_t left, int32_t right, Merge merge) {
  MH_ASSERT(merge.rank >= 0);
  if (4 * (count_ + 1) > 3 * slots_.size()) {
    const std::vector<Slot> before =
        std::exchange(slots_, std::vector<Slot>(std::max<size_t>(64, 2 * slots_.size())));
    for (const Slot& slot : before) {
      if (!slot.is_free()) slots_[place(slot.key)] = slot;
    }
  }
  Slot& slot = slots_[place(key(left, right))];
  if (slot.is_free()) ++count_;
  slot = {key(left, right), merge};
}

void MergeTable::merge_all(std::vector<Symbol>& symbols) const {
  if (symbols.size() < 2) return;
  struct Links {
    int32_t previous;
    int32_t next;
    bool gone = false;
  };
  struct Candidate {
    int32_t rank;
    int32_t at;
    int32_t merged;
    bool operator<(const Candidate& other) const {  // the queue's top is the lowest rank, leftmost
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };
  const auto size = static_cast<int32_t>(symbols.size());
  std::vector<Links> links(symbols.size());
  std::priority_queue<Candidate> queue;
  const auto consider = [&](int32_t at) {
    if (at < 0 || links[at].next < 0) return;
    if (const Merge* merge = find(symbols[at].id, symbols[links[at].next].id)) {
      queue.push({merge->rank, at, merge->merged});
    }
  };
  for (int32_t i = 0; i < size; ++i) links[i] = {i - 1, i + 1 < size ? i + 1 : -1};
  for (int32_t i = 0; i < size; ++i) consider(i);

  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    if (links[top.at].gone || links[top.at].next < 0) continue;
    const int32_t right = links[top.at].next;
    // The pair may have changed since it was queued; it still merges when the outcome is the same.
    const Merge* now = find(symbols[top.at].id, symbols[right].id);
    if (now == nullptr || now->merged != top.merged) continue;
    symbols[top.at] = {top.merged, symbols[top.at].length + symbols[right].length};
    links[right].gone = true;
    links[top.at].next = links[right].next;
    if (links[right].next >= 0) links[links[right].next].previous = top.at;
    consider(links[top.at].previous);
    consider(top.at);
  }
  std::size_t kept = 0;
  for (int32_t i = 0; i < size; ++i) {
    if (!links[i].gone) symbols[kept++] = symbols[i];
  }
  symbols.resize(kept);
}

}  // namespace mh
