#include "multihead/heads/circuit/edge_scores.h"

#include <algorithm>
#include <string>
#include <utility>

#include "multihead/autograd/ops.h"
#include "multihead/base/finite.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/circuit/edge_sites.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/norm.h"

namespace mh {
namespace {

/// sum of x * y over equal rows. Sixteen sums at once, so that the compiler makes vectors of them.
double dot(ConstMatrixView x, ConstMatrixView y) {
  constexpr int64_t kLanes = 16;
  double total = 0;
  for (int64_t i = 0; i < x.rows; ++i) {
    const float *a = x.row(i), *b = y.row(i);
    float sums[kLanes] = {};
    int64_t c = 0;
    for (; c + kLanes <= x.cols; c += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[c + lane] * b[c + lane];
    }
    double row = 0;
    for (; c < x.cols; ++c) row += static_cast<double>(a[c]) * static_cast<double>(b[c]);
    for (const float sum : sums) row += static_cast<double>(sum);
    total += row;
  }
  return total;
}

/// The gradients of Norm(x) become those of x, for several of them.
void pull_back(const NormParameters& parameters, ConstMatrixView x, std::vector<Tensor>& gradients) {
  if (parameters.gain == nullptr) return;
  const Norm norm = parameters.values();
  Tensor y(x.rows, x.cols);
  std::vector<float> mean(static_cast<size_t>(x.rows)), inverse(static_cast<size_t>(x.rows));
  normalise(norm, x, y.view(), mean.data(), inverse.data());
  parallel_for(std::ssize(gradients), [&](int64_t i) {
    Tensor& g = gradients[static_cast<size_t>(i)];
    std::vector<float> gain(static_cast<size_t>(x.cols)),
        bias(static_cast<size_t>(x.cols));  // nobody asks for theirs
    normalise_gradient(norm, x, mean.data(), inverse.data(), g.view(), g.view(), gain.data(), bias.data());
  });
}

}  // namespace

/// Some pairs, each with the runs of all its steps.
class EdgeScores::Batch {
 public:
  Batch(EdgeScores& owner, std::span<const CircuitPair> pairs)
      : owner_(owner), graph_(owner.graph_), pairs_(pairs), steps_(owner.options_.steps) {
    keep_streams(graph_, false, ends_);
    run_ends();
    run_between();
    differences_.resize(graph_.sources().size());
    parallel_for(std::ssize(differences_),
                 [&](int64_t s) { differences_[static_cast<size_t>(s)] = difference(static_cast<int>(s)); });
    for (size_t s = 0; s < graph_.streams().size(); ++s) {
      const auto sublayers = static_cast<int>(graph_.streams()[s].sublayers.size());
      for (int i = 0; i < sublayers; ++i) {
        for (const TargetKind kind :
             {TargetKind::kQueries, TargetKind::kKeys, TargetKind::kValues, TargetKind::kFeedForward})
          add_targets(graph_.targets_of(static_cast<int>(s), i, kind));
      }
    }
    add_targets({.first = static_cast<int>(graph_.targets().size()) - 1, .count = 1});
  }

 private:
  /// Sequence 2 p is the clean text of pair p, 2 p + 1 the corrupt one.
  void run_ends() {
    std::vector<CircuitTexts::Text> texts;
    for (const CircuitPair& pair : pairs_) {
      texts.push_back({&pair, false});
      texts.push_back({&pair, true});
    }
    const CircuitTexts::Batches batches = CircuitTexts::batches(texts);
    Tape tape;
    CallersSites together(owner_.options_.sites, ends_, texts.size());
    Context context{.tape = tape, .sites = together.sites()};
    owner_.texts_.scores(context, texts, batches);
  }

  /// Sequence p * steps + k is step k of pair p.
  void run_between() {
    keep_streams(graph_, false, between_);
    for (const Stream& stream : graph_.streams()) {
      const std::string site = stream.embeddings_site();
      const int64_t columns = ends_.value(site).cols();
      int64_t rows = 0;
      for (size_t p = 0; p < pairs_.size(); ++p) rows += steps_ * end_rows(site, p, false).rows;
      Tensor numbers(rows, columns);
      float* to = numbers.data();
      for (size_t p = 0; p < pairs_.size(); ++p) {
        const ConstMatrixView clean = end_rows(site, p, false), corrupt = end_rows(site, p, true);
        for (int64_t k = 0; k < steps_; ++k) {
          const float share = (static_cast<float>(k) + 0.5f) / static_cast<float>(steps_);
          for (int64_t i = 0; i < clean.rows; ++i) {
            for (int64_t c = 0; c < columns; ++c)
              *to++ = corrupt(i, c) + share * (clean(i, c) - corrupt(i, c));
          }
        }
      }
      between_.replace({.site = site, .numbers = std::move(numbers)});
      for (const StreamSublayer& sublayer : stream.sublayers) {
        if (sublayer.attention == nullptr) {
          between_.watch(StreamGraph::site_of(sublayer, TargetKind::kFeedForward));
          continue;
        }
        for (const TargetKind kind : {TargetKind::kQueries, TargetKind::kKeys, TargetKind::kValues})
          between_.watch(StreamGraph::site_of(sublayer, kind));
      }
    }
    between_.watch(graph_.targets().back().name);
    std::vector<CircuitTexts::Text> texts;
    for (const CircuitPair& pair : pairs_)
      texts.insert(texts.end(), static_cast<size_t>(steps_), {&pair, false});
    batches_ = CircuitTexts::batches(texts);
    CallersSites together(owner_.options_.sites, between_, texts.size());
    Context context{.tape = owner_.tape_, .sites = together.sites()};
    const Var scores = owner_.texts_.scores(context, texts, batches_);
    require_finite(scores.value(), "the score of a text", Blame::kWeights);
    owner_.tape_.backward(ops::sum(owner_.tape_, scores));
  }

  ConstMatrixView end_rows(const std::string& site, size_t pair, bool corrupt) const {
    return ends_.kept(site).sequence(static_cast<int>(2 * pair + (corrupt ? 1 : 0)));
  }

  /// By pair, what a source writes for the clean text less what it writes for the corrupt one.
  std::vector<Tensor> difference(int source) const {
    const StreamSource& from = graph_.sources()[static_cast<size_t>(source)];
    const Stream& stream = graph_.streams()[static_cast<size_t>(from.stream)];
    const StreamSublayer* sublayer =
        from.sublayer >= 0 ? &stream.sublayers[static_cast<size_t>(from.sublayer)] : nullptr;
    const bool head = sublayer != nullptr && sublayer->attention != nullptr;
    const std::string site = sublayer == nullptr ? stream.embeddings_site()
                             : head              ? sublayer->heads_site()
                                                 : sublayer->output_site;
    std::vector<Tensor> found;
    for (size_t p = 0; p < pairs_.size(); ++p) {
      Tensor changed = copied(end_rows(site, p, false));
      const ConstMatrixView corrupt = end_rows(site, p, true);
      for (int64_t i = 0; i < changed.rows(); ++i) {
        for (int64_t c = 0; c < changed.cols(); ++c) changed(i, c) -= corrupt(i, c);
      }
      found.push_back(head ? owner_.matrices_.written(source, changed.view()) : std::move(changed));
    }
    return found;
  }

  /// The gradients at the site of each of these targets, by what it reads behind its norm.
  std::vector<Tensor> seeds(StreamGraph::Targets targets) const {
    const StreamTarget& first = graph_.targets()[static_cast<size_t>(targets.first)];
    const bool of_heads = first.kind != TargetKind::kFeedForward && first.kind != TargetKind::kStates;
    const std::string site = first.sublayer < 0
                                 ? first.name
                                 : StreamGraph::site_of(graph_.streams()[static_cast<size_t>(first.owner)]
                                                            .sublayers[static_cast<size_t>(first.sublayer)],
                                                        first.kind);
    const ConstMatrixView gradient = between_.gradient(site);
    std::vector<Tensor> found(static_cast<size_t>(targets.count));
    if (!of_heads) {
      found[0] = copied(gradient);
      return found;
    }
    const int64_t width = gradient.cols / targets.count;
    parallel_for(targets.count, [&](int64_t h) {
      const HeadProjection& projection = owner_.matrices_.projection(targets.first + static_cast<int>(h));
      Tensor& g = found[static_cast<size_t>(h)];
      g = Tensor(gradient.rows, projection.transposed.cols());
      multiply(gradient.columns_between(h * width, (h + 1) * width), projection.transposed, g.view());
    });
    return found;
  }

  void add_targets(StreamGraph::Targets targets) {
    if (targets.count == 0) return;
    const StreamTarget& first = graph_.targets()[static_cast<size_t>(targets.first)];
    const Stream& stream = graph_.streams()[static_cast<size_t>(first.stream)];
    const auto at = [&](int place) { return between_.value(stream.site_before(place)).view(); };
    std::vector<Tensor> g = seeds(targets);
    pull_back(first.norm, at(first.place), g);
    int end = first.place;  // the sublayers before it have not been counted
    const auto count_from = [&](int begin, const std::vector<Tensor>& gradients) {
      const int from =
          begin < 0 ? stream.embeddings : stream.sublayers[static_cast<size_t>(begin)].first_source;
      const int to = end == 0 ? stream.embeddings + 1
                              : stream.sublayers[static_cast<size_t>(end - 1)].first_source +
                                    stream.sublayers[static_cast<size_t>(end - 1)].sources;
      count(targets, gradients, from, to);
      end = std::max(begin, 0);
    };
    if (stream.is_sum()) return count_from(-1, g);
    for (int place = first.place - 1; place >= 0; --place) {
      const StreamSublayer& sublayer = stream.sublayers[static_cast<size_t>(place)];
      const ConstMatrixView output = between_.value(sublayer.output_site).view();
      if (sublayer.after.gain != nullptr) {
        Tensor sum = copied(output);
        normalise_rows(sublayer.output, sum.view());
        for (int64_t i = 0; i < sum.rows(); ++i) {
          for (int64_t c = 0; c < sum.cols(); ++c) sum(i, c) += at(place)(i, c);
        }
        pull_back(sublayer.after, sum.view(), g);
      }
      std::vector<Tensor> own = g;
      pull_back(sublayer.output, output, own);
      count_from(place, own);
    }
    count(targets, g, stream.embeddings, stream.embeddings + 1);
  }

  /// Adds the scores of the edges from sources [from, to) to these targets, whose gradients at the sources' place are given.
  void count(StreamGraph::Targets targets, const std::vector<Tensor>& gradients, int from, int to) {
    const int stream = graph_.targets()[static_cast<size_t>(targets.first)].stream;
    const KeptValue& rows = between_.kept(graph_.streams()[static_cast<size_t>(stream)].embeddings_site());
    std::vector<std::vector<Tensor>> means(gradients.size());  // by target and pair: over the steps
    parallel_for(std::ssize(gradients), [&](int64_t t) {
      const Tensor& g = gradients[static_cast<size_t>(t)];
      for (size_t p = 0; p < pairs_.size(); ++p) {
        const int32_t begin = rows.offsets[p * static_cast<size_t>(steps_)];
        const int32_t length = rows.offsets[p * static_cast<size_t>(steps_) + 1] - begin;
        Tensor mean(length, g.cols());
        const float* of_steps = g.view().row(begin);
        for (int64_t k = 0; k < steps_; ++k) {
          for (int64_t i = 0; i < mean.size(); ++i)
            mean.data()[i] += *of_steps++ / static_cast<float>(steps_);
        }
        means[static_cast<size_t>(t)].push_back(std::move(mean));
      }
    });
    parallel_for(to - from, [&](int64_t i) {
      const int source = from + static_cast<int>(i);
      for (int t = 0; t < targets.count; ++t) {
        double& total = owner_.totals_[owner_.index(source, targets.first + t)];
        for (size_t p = 0; p < pairs_.size(); ++p)
          total += dot(differences_[static_cast<size_t>(source)][p].view(),
                       means[static_cast<size_t>(t)][p].view());
      }
    });
  }

  EdgeScores& owner_;
  const StreamGraph& graph_;
  std::span<const CircuitPair> pairs_;
  int64_t steps_;
  SiteValues ends_, between_;
  CircuitTexts::Batches batches_;                 // the backward pass reads it
  std::vector<std::vector<Tensor>> differences_;  // by source and pair
};

EdgeScores::EdgeScores(const CircuitTexts& texts, const StreamGraph& graph, const HeadMatrices& matrices,
                       const Options& options)
    : texts_(texts),
      graph_(graph),
      matrices_(matrices),
      options_(options),
      totals_(graph.sources().size() * graph.targets().size()) {}

void EdgeScores::add(std::span<const CircuitPair> pairs) {
  in_batches(
      pairs.size(), options_.max_batch_tokens, [&](size_t i) { return pairs[i].tokens() * options_.steps; },
      [&](size_t begin, size_t end) {
        const Batch batch(*this, pairs.subspan(begin, end - begin));
        tape_.clear();  // its memory serves the next ones
      });
}

}  // namespace mh
