// Agglomerative clustering by average linkage (Sokal and Michener 1958, "A statistical method for evaluating systematic
// relationships": UPGMA): the two clusters with the smallest mean distance between their points become one, until one is left.
#pragma once

#include <span>
#include <vector>

namespace mh {

/// Points are clusters 0 to n - 1, and merge k makes cluster n + k.
struct Merge {
  int first = 0, second = 0;  // clusters; the first has the point with the smallest number
  double height = 0;          // the mean distance between a point of one and a point of the other
  int size = 0;               // points of the new cluster
};

struct Dendrogram {
  int points = 0;
  std::vector<Merge> merges = {};  // points - 1 of them, heights rising

  /// The points of a cluster, those of Merge::first before those of Merge::second.
  std::vector<int> points_of(int cluster) const;
  /// All points so that no lines of the drawn tree cross.
  std::vector<int> order() const;
};

/// distances: [points, points], symmetric. Of equal distances the one between the smallest numbers counts. Takes time in
/// points^2, and points^3 at worst.
Dendrogram average_linkage(std::span<const double> distances, int points);

/// For each merge the mean of these other distances, [points, points], between the points that it joined.
std::vector<double> joined_means(const Dendrogram& tree, std::span<const double> distances);

/// The largest clusters of which every merge is `kept`, as numbers of clusters, in the order of the tree. Points alone are none.
std::vector<int> kept_clusters(const Dendrogram& tree, const std::vector<bool>& kept);

}  // namespace mh
