#include "multihead/text/piece_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "multihead/base/error.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/piece_index.h"

namespace mh {

void for_each_pair(const std::vector<std::pair<std::string, int32_t>>& pieces,
                   const std::function<void(int32_t left, int32_t right, int32_t whole)>& take) {
  std::vector<std::pair<std::string, int32_t>> backward = pieces;
  for (auto& [text, number] : backward) text.assign(text.rbegin(), text.rend());
  const PieceIndex starts(pieces), ends(backward);
  backward.clear();
  std::vector<int32_t> rights;  // the piece that is all from each byte on; -1: none
  for (const auto& [text, number] : pieces) {
    rights.resize(text.size());
    PieceIndex::Walk walk = ends.start();
    for (size_t at = text.size(); at-- > 0;) {
      walk = ends.next(walk, text[at]);
      rights[at] = ends.id(walk);
    }
    walk = starts.start();
    for (size_t at = 1; at < text.size(); ++at) {
      walk = starts.next(walk, text[at - 1]);
      const int32_t left = starts.id(walk);
      if (left >= 0 && rights[at] >= 0) take(left, rights[at], number);
    }
  }
}

std::vector<std::pair<std::string, std::string>> merges_of_scores(const std::vector<ScoredPiece>& pieces,
                                                                  FirstMerge first) {
  struct Pair {
    int32_t left, right, whole;
  };
  std::vector<std::pair<std::string, int32_t>> texts;
  texts.reserve(pieces.size());
  size_t most_bytes = 1 << 20, bytes = 0;
  for (const ScoredPiece& piece : pieces) {
    texts.emplace_back(piece.text, static_cast<int32_t>(texts.size()));
    most_bytes += 16 * piece.text.size();
  }
  const auto text = [&](int32_t piece) -> const std::string& {
    return texts[static_cast<size_t>(piece)].first;
  };
  const auto score = [&](int32_t piece) { return pieces[static_cast<size_t>(piece)].score; };
  std::vector<Pair> pairs;
  for_each_pair(texts, [&](int32_t left, int32_t right, int32_t whole) {
    bytes += text(whole).size();
    if (bytes > most_bytes) {
      throw FormatError(fmt::format(
          "its {} pieces can be put together in more ways than those of any real vocabulary, e.g. {}",
          pieces.size(), in_quotes(text(whole))));
    }
    pairs.push_back({left, right, whole});
  });
  std::sort(pairs.begin(), pairs.end(), [&](const Pair& a, const Pair& b) {
    const auto order = [&](const Pair& pair) {
      const int64_t sign = first == FirstMerge::kOfLongestLeft ? -1 : 1;
      return std::tuple(-score(pair.whole), sign * static_cast<int64_t>(text(pair.left).size()),
                        sign * static_cast<int64_t>(text(pair.right).size()), pair.whole);
    };
    return order(a) < order(b);
  });
  std::vector<std::pair<std::string, std::string>> merges;
  merges.reserve(pairs.size());
  for (const Pair& pair : pairs) merges.emplace_back(text(pair.left), text(pair.right));
  return merges;
}

}  // namespace mh
