#include "multihead/heads/attribution/faithfulness.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/heads/attribution/attribute_text.h"
#include "multihead/io/check_option.h"
#include "multihead/io/lines.h"

namespace mh {
namespace {

/// The tokens that may be replaced, those with the largest scores first.
std::vector<size_t> order_of(const ExplainedText& text, const std::vector<double>& scores) {
  std::vector<size_t> order;
  for (size_t i = 0; i < text.tokens().size(); ++i) {
    if (!text.tokens()[i].kept) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

/// The area under the points (x, y), x rising.
double area_under(const std::vector<double>& x, std::span<const double> y) {
  double area = 0;
  for (size_t i = 1; i < x.size(); ++i) area += (x[i] - x[i - 1]) * (y[i] + y[i - 1]) / 2;
  return area;
}

/// The areas of all sentences, by method; the random orders last.
class AreaSums {
 public:
  AreaSums(std::vector<AttributionMethod> methods, const FaithfulnessOptions& options)
      : methods_(std::move(methods)),
        options_(options),
        random_(options.seed),
        deletion_(methods_.size() + 1),
        insertion_(methods_.size() + 1) {}

  void add(const ExplainedText& text) {
    AttributionOptions asked = options_.attribution;
    asked.methods = methods_;
    const AttributionReport found = attribute_text(text, asked);
    for (size_t m = 0; m < methods_.size(); ++m) put(m, areas(text, found.of(methods_[m])));
    FaithfulnessAreas mean;
    for (int draw = 0; draw < options_.draws; ++draw) {
      std::vector<double> scores(text.tokens().size());
      for (double& score : scores) score = random_.uniform();
      const FaithfulnessAreas one = areas(text, scores);
      mean.deletion += one.deletion / options_.draws;
      mean.insertion += one.insertion / options_.draws;
    }
    put(methods_.size(), mean);
    scores_.push_back(found.score);
    replaced_.push_back(found.replaced_score);
    replacement_ = {found.source_replacement, found.target_replacement};
  }

  Faithfulness result() const {
    Faithfulness all{.sentences = std::ssize(scores_),
                     .source_replacement = replacement_.first,
                     .target_replacement = replacement_.second,
                     .score = interval_of(scores_),
                     .replaced_score = interval_of(replaced_)};
    for (size_t m = 0; m < deletion_.size(); ++m) {
      MethodFaithfulness& one = all.methods.emplace_back();
      if (m < methods_.size()) one.method = methods_[m];
      one.deletions = deletion_[m];
      one.insertions = insertion_[m];
      one.deletion = interval_of(deletion_[m]);
      one.insertion = interval_of(insertion_[m]);
      one.deletion_gain = interval_of(differences(deletion_.back(), deletion_[m]));
      one.insertion_gain = interval_of(differences(insertion_[m], insertion_.back()));
    }
    return all;
  }

 private:
  FaithfulnessAreas areas(const ExplainedText& text, const std::vector<double>& scores) const {
    return faithfulness_areas(text, scores, options_.points, options_.attribution.max_batch_tokens);
  }
  void put(size_t m, const FaithfulnessAreas& areas) {
    deletion_[m].push_back(areas.deletion);
    insertion_[m].push_back(areas.insertion);
  }
  static std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> found(a.size());
    for (size_t i = 0; i < a.size(); ++i) found[i] = a[i] - b[i];
    return found;
  }

  std::vector<AttributionMethod> methods_;
  const FaithfulnessOptions& options_;
  Random random_;
  std::vector<std::vector<double>> deletion_, insertion_;  // [methods + 1][sentences]
  std::vector<double> scores_, replaced_;
  std::pair<std::string, std::string> replacement_;
};

void check_faithfulness(const FaithfulnessOptions& options) {
  const AttributionOptions& asked = options.attribution;
  if (asked.position || !asked.target_token.empty() || !asked.target.empty())
    throw UsageError(
        "over a corpus the last word of each text is explained; leave the token and the target out");
  check_settings(options);
}

/// Why a text is left out; empty: it is not.
std::string refusal_of(const ExplainedText& text, bool flow) {
  const auto replaceable =
      std::count_if(text.tokens().begin(), text.tokens().end(), [](const ReadToken& t) { return !t.kept; });
  if (replaceable < 2) return "it has fewer than two tokens to replace";
  if (flow && std::ssize(text.ids()) > kMostFlowTokens)
    return fmt::format("it has more than the {} tokens of a flow", kMostFlowTokens);
  return "";
}

using MakeExplained = std::function<std::unique_ptr<ExplainedText>(const HeadsText&, size_t)>;

Faithfulness measured(HeadsCorpus& corpus, const FaithfulnessOptions& options, const MakeExplained& make) {
  check_faithfulness(options);
  const std::vector<AttributionMethod> methods = methods_to_run(options.attribution, 0);
  const bool flow = std::find(methods.begin(), methods.end(), AttributionMethod::kFlow) != methods.end();
  AreaSums sums(methods, options);
  int64_t done = 0, left_out = 0;
  std::string why = "there is none";
  for (HeadsText lines = corpus.next(); !lines.sources.empty(); lines = corpus.next()) {
    for (size_t i = 0; i < lines.sources.size(); ++i) {
      if (is_blank(lines.sources[i])) {
        left_out += has_other_side(lines, i) ? 1 : 0;
        continue;
      }
      std::string refusal;
      try {
        const std::unique_ptr<ExplainedText> text = make(lines, i);
        refusal = refusal_of(*text, flow);
        if (refusal.empty()) sums.add(*text);
      } catch (const UsageError& error) {  // e.g. too short to predict anything
        refusal = error.what();
      }
      if (refusal.empty()) {
        if (options.progress) options.progress(++done);
      } else {
        ++left_out;
        why = refusal;
      }
    }
  }
  Faithfulness found = sums.result();
  if (found.sentences == 0)
    throw UsageError(fmt::format("{}: no line can be explained: {}", corpus.name(), why));
  found.left_out = left_out;
  return found;
}

}  // namespace

FaithfulnessAreas faithfulness_areas(const ExplainedText& text, const std::vector<double>& scores, int points,
                                     int64_t batch_tokens) {
  const std::vector<size_t> order = order_of(text, scores);
  const auto count = static_cast<int64_t>(order.size());
  std::vector<size_t> rank(scores.size());
  for (size_t k = 0; k < order.size(); ++k) rank[order[k]] = k;
  const int64_t steps = std::min<int64_t>(points, count);
  std::vector<double> x;
  std::vector<std::vector<int32_t>> variants;
  for (int64_t step = 0; step <= steps; ++step) {
    const auto k = static_cast<size_t>(step * count / steps);
    x.push_back(static_cast<double>(k) / static_cast<double>(count));
    variants.push_back(text.replaced([&](size_t i) { return rank[i] < k; }));
  }
  for (int64_t step = 0; step <= steps; ++step) {
    const auto k = static_cast<size_t>(step * count / steps);
    variants.push_back(text.replaced([&](size_t i) { return rank[i] >= k; }));
  }
  const std::vector<double> found = text.scores(variants, batch_tokens);
  const std::span<const double> all(found);
  return {.deletion = area_under(x, all.first(x.size())), .insertion = area_under(x, all.subspan(x.size()))};
}

Faithfulness faithfulness(const ModelFolder& folder, HeadsCorpus& corpus,
                          const FaithfulnessOptions& options) {
  if (folder.gives_vectors_alone())
    throw UsageError("this encoder predicts no words; give pairs of texts, of which cosines are explained");
  return measured(corpus, options, [&](const HeadsText& lines, size_t i) {
    AttributionOptions own = options.attribution;
    if (!lines.targets.empty()) own.target = lines.targets[i];
    return std::make_unique<ExplainedText>(folder, lines.sources[i], own);
  });
}

Faithfulness faithfulness(const SentenceModel& model, HeadsCorpus& corpus,
                          const FaithfulnessOptions& options) {
  return measured(corpus, options, [&](const HeadsText& lines, size_t i) {
    if (lines.pairs.empty()) throw UsageError("an encoder's cosine needs a second text for each line");
    return std::make_unique<ExplainedText>(model, lines.sources[i], lines.pairs[i], options.attribution);
  });
}

}  // namespace mh
