#include "multihead/heads/measures/heads_similar.h"
#include "multihead/io/check_option.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mh {
namespace {

std::vector<int> nearest_heads(const ComparedHeads& compared, size_t head, int most) {
  std::vector<int> others(compared.heads.size());
  std::iota(others.begin(), others.end(), 0);
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(head));
  const auto kept = others.begin() + std::min<std::ptrdiff_t>(most, std::ssize(others));
  std::partial_sort(others.begin(), kept, others.end(), [&](int g, int h) {
    return std::pair(compared.divergence_of(head, static_cast<size_t>(g)), g) <
           std::pair(compared.divergence_of(head, static_cast<size_t>(h)), h);
  });
  others.erase(kept, others.end());
  return others;
}

SimilarKind similar_kind(ComparedHeads compared, const SimilarOptions& options) {
  SimilarKind kind{.compared = std::move(compared)};
  const auto heads = static_cast<int>(kind.compared.heads.size());
  for (int h = 0; h < heads; ++h)
    kind.nearest.push_back(nearest_heads(kind.compared, static_cast<size_t>(h), options.nearest));
  kind.tree = average_linkage(kind.compared.divergence, heads);
  kind.null_heights = joined_means(kind.tree, kind.compared.null_divergence);
  std::vector<bool> alike;
  for (size_t k = 0; k < kind.tree.merges.size(); ++k)
    alike.push_back(kind.tree.merges[k].height <= options.cluster_ratio * kind.null_heights[k]);
  kind.clusters = kept_clusters(kind.tree, alike);
  return kind;
}

}  // namespace

SimilarReport heads_similar(const ModelFolder& folder, HeadsCorpus& corpus, const SimilarOptions& options) {
  check_option("nearest", options.nearest, {.low = 0});
  check_option("cluster_ratio", options.cluster_ratio, {.low = 0});
  SimilarHeadsObserver observer(compared_attentions(*folder.model), options.compare);
  CorpusObserver* const observers[] = {&observer};
  ObserveHeadsOptions observe = options.observe;
  observe.observe.max_batch_tokens = std::min(observe.observe.max_batch_tokens, observer.batch_tokens());
  SimilarReport similar{.read = observe_heads(folder, corpus, observers, observe),
                        .seed = options.compare.seed,
                        .cluster_ratio = options.cluster_ratio};
  for (ComparedHeads& kind : observer.kinds())
    similar.kinds.push_back(similar_kind(std::move(kind), options));
  return similar;
}

}  // namespace mh
