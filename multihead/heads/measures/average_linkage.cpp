#include "multihead/heads/measures/average_linkage.h"

#include "multihead/base/error.h"

namespace mh {
namespace {

/// Clusters that are not merged yet, each in the row of its smallest point.
class Clusters {
 public:
  Clusters(std::span<const double> distances, int points)
      : points_(static_cast<size_t>(points)),
        distances_(distances.begin(), distances.end()),
        cluster_(points_),
        size_(points_, 1),
        nearest_(points_) {
    for (size_t i = 0; i < points_; ++i) cluster_[i] = static_cast<int>(i);
    for (size_t i = 0; i < points_; ++i) find_nearest(i);
  }

  Merge merge(int made) {
    size_t a = points_;
    for (size_t i = 0; i < points_; ++i) {
      if (cluster_[i] < 0 || nearest_[i] == points_) continue;
      if (a == points_ || at(i, nearest_[i]) < at(a, nearest_[a])) a = i;
    }
    const size_t b = nearest_[a];
    const Merge merge{cluster_[a], cluster_[b], at(a, b), size_[a] + size_[b]};
    for (size_t i = 0; i < points_; ++i) {
      if (cluster_[i] < 0 || i == a || i == b) continue;
      at(a, i) = at(i, a) = (size_[a] * at(a, i) + size_[b] * at(b, i)) / merge.size;
    }
    cluster_[a] = made;
    cluster_[b] = -1;
    size_[a] = merge.size;
    for (size_t i = 0; i < points_; ++i) {
      if (cluster_[i] < 0) continue;
      if (i == a || nearest_[i] == a || nearest_[i] == b) {
        find_nearest(i);
      } else if (i < a && at(i, a) < at(i, nearest_[i])) {
        nearest_[i] = a;
      }
    }
    return merge;
  }

 private:
  double& at(size_t i, size_t j) { return distances_[i * points_ + j]; }
  /// Of the clusters in later rows; points_ when there is none.
  void find_nearest(size_t i) {
    nearest_[i] = points_;
    for (size_t j = i + 1; j < points_; ++j) {
      if (cluster_[j] >= 0 && (nearest_[i] == points_ || at(i, j) < at(i, nearest_[i]))) nearest_[i] = j;
    }
  }

  size_t points_;
  std::vector<double> distances_;
  std::vector<int> cluster_;  // -1: merged into an earlier row
  std::vector<int> size_;
  std::vector<size_t> nearest_;
};

}  // namespace

std::vector<int> Dendrogram::points_of(int cluster) const {
  std::vector<int> found, open{cluster};
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    if (next < points) {
      found.push_back(next);
    } else {
      const Merge& merge = merges[static_cast<size_t>(next - points)];
      open.insert(open.end(), {merge.second, merge.first});
    }
  }
  return found;
}

std::vector<int> Dendrogram::order() const {
  return points == 0 ? std::vector<int>() : points_of(2 * points - 2);
}

Dendrogram average_linkage(std::span<const double> distances, int points) {
  MH_ASSERT(distances.size() == static_cast<size_t>(points) * static_cast<size_t>(points));
  Dendrogram tree{.points = points};
  Clusters clusters(distances, points);
  for (int made = points; made + 1 < 2 * points; ++made) tree.merges.push_back(clusters.merge(made));
  return tree;
}

std::vector<double> joined_means(const Dendrogram& tree, std::span<const double> distances) {
  const auto points = static_cast<size_t>(tree.points);
  MH_ASSERT(distances.size() == points * points);
  std::vector<double> means;
  for (const Merge& merge : tree.merges) {
    const std::vector<int> first = tree.points_of(merge.first), second = tree.points_of(merge.second);
    double sum = 0;
    for (const int i : first) {
      for (const int j : second) sum += distances[static_cast<size_t>(i) * points + static_cast<size_t>(j)];
    }
    means.push_back(sum / static_cast<double>(first.size() * second.size()));
  }
  return means;
}

std::vector<int> kept_clusters(const Dendrogram& tree, const std::vector<bool>& kept) {
  MH_ASSERT(kept.size() == tree.merges.size());
  std::vector<bool> whole(static_cast<size_t>(tree.points), true);  // of each cluster: its merges are kept
  for (size_t k = 0; k < kept.size(); ++k) {
    const Merge& merge = tree.merges[k];
    whole.push_back(kept[k] && whole[static_cast<size_t>(merge.first)] &&
                    whole[static_cast<size_t>(merge.second)]);
  }
  std::vector<int> found;
  if (tree.points == 0) return found;
  std::vector<int> open{2 * tree.points - 2};
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    if (next < tree.points) continue;
    if (whole[static_cast<size_t>(next)]) {
      found.push_back(next);
    } else {
      const Merge& merge = tree.merges[static_cast<size_t>(next - tree.points)];
      open.insert(open.end(), {merge.second, merge.first});
    }
  }
  return found;
}

}  // namespace mh
