// 004.2, trained: on sentences, the weights of the heads of a trained encoder beside those of one head with
// the same numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "lab/studies/claim_words.h"
#include "lab/studies/comparison.h"
#include "lab/studies/lab.h"
#include "lab/studies/one_product/claims.h"
#include "multihead/heads/reports/trace/trace.h"

namespace mh::one_product {
namespace {

using namespace lab;

constexpr int kSentences = 50;
constexpr double kApart = 0.1;  // at least, of weights and of outputs

/// One head with all parameters of `heads`: W^Q = [W_1^Q ... W_h^Q], and so on. Its scale is 1 / sqrt(d).
class SingleHead {
 public:
  explicit SingleHead(const MultiHeadAttention& heads) : attention_("single head", config(heads), streams_) {
    std::map<std::string, const Parameter*> given;
    heads.visit("", ConstParameterVisitor(
                        [&](const std::string& name, const Parameter& p) { given.emplace(name, &p); }));
    attention_.visit("", ParameterVisitor([&](const std::string& name, Parameter& p) {
                       p.value = given.at(name)->value;
                       p.changed();
                     }));
  }
  const MultiHeadAttention& attention() const { return attention_; }

 private:
  static MultiHeadAttentionConfig config(const MultiHeadAttention& heads) {
    MultiHeadAttentionConfig one = heads.config();
    HeadGeometry& g = one.geometry;
    g.d_key *= g.heads, g.d_value *= g.heads;
    g.heads = g.key_heads = g.value_heads = 1;
    g.scale.reset();
    return one;
  }
  DropoutStreams streams_;
  MultiHeadAttention attention_;
};

struct Compared {
  std::vector<Matrix> heads;  // weights
  Matrix single;
  double scores = 0;                         // of their sum from the single head's, relative
  double nearest = 0, mean = 0, output = 0;  // distances from the single head
};

/// Half of the sum of the absolute differences in a row, from 0 to 1; the mean over the rows.
double distance(const Matrix& a, const Matrix& b) {
  double all = 0;
  for (int64_t i = 0; i < a.size(); ++i) all += std::abs(a.data()[i] - b.data()[i]) / 2;
  return all / static_cast<double>(a.rows());
}

Compared compare(const Model& model, const std::string& attention, const std::vector<int32_t>& sentence) {
  const AttentionTrace many = trace_attention(model, attention, sentence, {});
  const SingleHead one(model.attention(attention));
  const AttentionTrace single =
      trace_attention(one.attention(), many.step("x").value.view(), {}, Mask::none());
  const auto step = [](const AttentionTrace& trace, const std::string& name) {
    return in_double(trace.step(name).value.view());
  };
  Compared c;
  c.single = step(single, "weights_0");
  const int heads = many.geometry.heads;
  const Matrix whole = step(single, "scores_0");
  Matrix scores(whole.rows(), whole.cols()), mean(whole.rows(), whole.cols());
  c.nearest = 1;
  for (int h = 0; h < heads; ++h) {
    scores = sum(scores, step(many, fmt::format("scores_{}", h)));
    c.heads.push_back(step(many, fmt::format("weights_{}", h)));
    mean = sum(mean, c.heads.back(), 1.0 / heads);
    c.nearest = std::min(c.nearest, distance(c.heads.back(), c.single));
  }
  c.scores = relative_difference(scores, whole);
  c.mean = distance(mean, c.single);
  const Matrix output = step(many, "output");
  c.output = norm(sum(step(single, "output"), output, -1)) / norm(output);
  return c;
}

/// The first sentence of 6 to 9 tokens, for the picture; the first one when there is none.
size_t short_sentence(const std::vector<std::vector<int32_t>>& sentences) {
  const auto found = std::find_if(sentences.begin(), sentences.end(),
                                  [](const auto& s) { return s.size() >= 6 && s.size() <= 9; });
  return found == sentences.end() ? 0 : static_cast<size_t>(found - sentences.begin());
}

/// Fills the plot of the heads' weights and of the one head's.
void draw(const Compared& c, std::vector<std::string> words, Plot& plot) {
  plot.row_names = plot.column_names = std::move(words);
  const auto add = [&](std::string name, const Matrix& a) {
    Series series{.name = std::move(name)};
    for (int64_t i = 0; i < a.rows(); ++i)
      series.lines.emplace_back(a.data() + i * a.cols(), a.data() + (i + 1) * a.cols());
    plot.series.push_back(std::move(series));
  };
  const size_t heads = c.heads.size();
  for (size_t h = 0; h < heads; ++h) add(fmt::format("{}head {}", h == 0 ? "" : "times ", h), c.heads[h]);
  add(fmt::format("to the power 1/√{}: one head", heads), c.single);
}

Claim scores_of_a_sentence(ArmRunner& runner) {
  Arm arm = canonical_arm(runner);
  runner.tune({&arm});
  const std::string attention = fmt::format("encoder.{}.self_attention", arm.model.encoder_layers - 1);
  const std::vector<std::vector<int32_t>>& sentences = runner.test().tokens.source;
  const size_t shown = short_sentence(sentences), looked_at = std::min<size_t>(kSentences, sentences.size());
  Claim claim = claim_without_figures("004.2, trained", {{"heads", std::to_string(arm.model.encoder_heads)},
                                                         {"sentences", std::to_string(looked_at)},
                                                         {"attention", attention},
                                                         {"seed", std::to_string(runner.seeds().front())}});
  std::vector<double> nearest, mean, output;
  double scores = 0;
  for (const uint64_t seed : runner.seeds()) {
    const auto model = runner.trained(arm, seed);
    double sums[3] = {};
    for (size_t i = 0; i < looked_at; ++i) {
      const Compared c = compare(*model, attention, sentences[i]);
      scores = std::max(scores, c.scores);
      sums[0] += c.nearest, sums[1] += c.mean, sums[2] += c.output;
    }
    const auto sentences_read = static_cast<double>(looked_at);
    nearest.push_back(sums[0] / sentences_read);
    mean.push_back(sums[1] / sentences_read);
    output.push_back(sums[2] / sentences_read);
    if (seed != runner.seeds().front()) continue;
    std::vector<std::string> words;
    for (const int32_t id : sentences[shown]) words.push_back(runner.tokenizers().source.token_of(id));
    draw(compare(*model, attention, sentences[shown]), std::move(words), claim.plots[0]);
  }
  decide(claim, scores <= 1e-5, fmt::format("largest difference {:.1e}", scores));
  predict(claim,
          {{nearest, Limit::above(kApart)}, {mean, Limit::above(kApart)}, {output, Limit::above(kApart)}});
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {{"004.2, trained", scores_of_a_sentence}};
  return kChecks;
}

}  // namespace mh::one_product
