#include "multihead/heads/measures/spanning_tree.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "multihead/base/error.h"

namespace mh {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// The words of a circle among the best heads, or none.
std::vector<int> circle_in(const std::vector<int>& heads) {
  const auto n = static_cast<int>(heads.size());
  std::vector<int> seen_from(heads.size(), -1);
  for (int start = 0; start < n; ++start) {
    int at = start;
    while (at >= 0 && seen_from[static_cast<size_t>(at)] < 0) {
      seen_from[static_cast<size_t>(at)] = start;
      at = heads[static_cast<size_t>(at)];
    }
    if (at < 0 || seen_from[static_cast<size_t>(at)] != start) continue;
    std::vector<int> circle{at};
    for (int next = heads[static_cast<size_t>(at)]; next != at; next = heads[static_cast<size_t>(next)])
      circle.push_back(next);
    return circle;
  }
  return {};
}

/// scores[i][j]; kNever: no edge.
std::vector<int> best_tree(const std::vector<std::vector<double>>& scores, int root) {
  const auto n = static_cast<int>(scores.size());
  std::vector<int> heads(scores.size(), -1);
  for (int j = 0; j < n; ++j) {
    if (j == root) continue;
    double best = kNever;
    for (int i = 0; i < n; ++i) {
      const double score = scores[static_cast<size_t>(i)][static_cast<size_t>(j)];
      if (i != j && score > best) best = score, heads[static_cast<size_t>(j)] = i;
    }
  }
  const std::vector<int> circle = circle_in(heads);
  if (circle.empty()) return heads;

  // The circle becomes one word, the last; an edge into it is worth what it gains over the edge of the circle that it breaks.
  std::vector<char> inside(scores.size(), 0);
  for (const int word : circle) inside[static_cast<size_t>(word)] = 1;
  std::vector<int> old_of;  // the words that stay
  int new_root = -1;
  for (int word = 0; word < n; ++word) {
    if (inside[static_cast<size_t>(word)]) continue;
    if (word == root) new_root = static_cast<int>(old_of.size());
    old_of.push_back(word);
  }
  const size_t merged = old_of.size();
  std::vector<std::vector<double>> smaller(merged + 1, std::vector<double>(merged + 1, kNever));
  std::vector<int> leaves_by(merged, -1), enters_at(merged, -1);  // the word of the circle, for each outside
  for (size_t i = 0; i < merged; ++i) {
    const auto out = static_cast<size_t>(old_of[i]);
    for (size_t j = 0; j < merged; ++j) smaller[i][j] = scores[out][static_cast<size_t>(old_of[j])];
    for (const int word : circle) {
      const auto w = static_cast<size_t>(word);
      if (scores[w][out] > smaller[merged][i]) smaller[merged][i] = scores[w][out], leaves_by[i] = word;
      const double gain = scores[out][w] - scores[static_cast<size_t>(heads[w])][w];
      if (gain > smaller[i][merged]) smaller[i][merged] = gain, enters_at[i] = word;
    }
  }
  const std::vector<int> of_smaller = best_tree(smaller, new_root);
  std::vector<int> result(scores.size(), -1);
  for (const int word : circle) result[static_cast<size_t>(word)] = heads[static_cast<size_t>(word)];
  for (size_t j = 0; j < merged; ++j) {
    const int head = of_smaller[j];
    if (head < 0) continue;
    result[static_cast<size_t>(old_of[j])] =
        static_cast<size_t>(head) == merged ? leaves_by[j] : old_of[static_cast<size_t>(head)];
  }
  const auto entering = static_cast<size_t>(of_smaller[merged]);
  result[static_cast<size_t>(enters_at[entering])] = old_of[entering];
  return result;
}

}  // namespace

std::vector<int> maximum_spanning_tree(const DoubleMatrix& scores, int root) {
  const auto n = static_cast<int>(scores.rows());
  if (root < 0 || root >= n) throw UsageError(fmt::format("the root is word {} of {}", root, n));
  std::vector<std::vector<double>> edges(static_cast<size_t>(n),
                                         std::vector<double>(static_cast<size_t>(n), kNever));
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (i == j || j == root) continue;
      if (!std::isfinite(scores(i, j)))
        throw UsageError(fmt::format("the score of word {} as the head of word {} is not finite", i, j));
      edges[static_cast<size_t>(i)][static_cast<size_t>(j)] = scores(i, j);
    }
  }
  return best_tree(edges, root);
}

}  // namespace mh
