#include "multihead/heads/attribution/heads_attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/heads/attribution/attribute_text.h"
#include "multihead/heads/attribution/gradient_methods.h"
#include "multihead/heads/attribution/largest_flow.h"
#include "multihead/heads/attribution/layer_mixes.h"
#include "multihead/heads/attribution/value_zeroing.h"
#include "multihead/io/check_option.h"

namespace mh {
namespace {

/// The passes that several methods share, each made when it is first asked for.
class MethodRun {
 public:
  MethodRun(const ExplainedText& text, const AttributionOptions& options) : text_(text), options_(options) {}

  std::vector<double> scores(AttributionMethod method) {
    const Model& model = text_.model();
    const std::vector<double>& rows = text_.rows();
    switch (method) {
      case AttributionMethod::kAttention:
        return last_layer(weights(), rows);
      case AttributionMethod::kNormWeighted:
        weights();
        return last_layer(norm_weighted(model, kept_), rows);
      case AttributionMethod::kRollout:
        return weighed_rows(rows, rollout(weights(), Sublayers::kInTurn));
      case AttributionMethod::kRelevance:
        return weighed_rows(rows, relevance(weights_with_gradients()));
      case AttributionMethod::kFlow:
        return attention_flow(weights(), rows);
      case AttributionMethod::kGradientTimesInput:
        return gradient_times_input(text_);
      case AttributionMethod::kIntegratedGradients:
        return integrated_gradients(text_, options_.steps, options_.max_batch_tokens);
      case AttributionMethod::kValueZeroing:
        return weighed_rows(rows,
                            rollout(zeroed_values(text_, options_.max_batch_tokens), Sublayers::kTogether));
    }
    return {};
  }

 private:
  const LayerMixes& weights() {
    if (!weights_) {
      kept_.keep("*.weights.*");
      kept_.keep("*_attention.values");
      const std::vector<std::vector<int32_t>> one = {text_.ids()};
      const ExplainedPass pass(text_, one, {.sites = &kept_});
      weights_ = mean_weights(text_.model(), kept_);
    }
    return *weights_;
  }

  LayerMixes weights_with_gradients() const {
    SiteValues watched;
    watched.keep("*.weights.*");
    watched.watch("*.weights.*");
    const std::vector<std::vector<int32_t>> one = {text_.ids()};
    ExplainedPass pass(text_, one, {.sites = &watched, .mode = Tape::Mode::kRecordValues});
    pass.backward();
    return positive_weights(text_.model(), watched);
  }

  const ExplainedText& text_;
  const AttributionOptions& options_;
  SiteValues kept_;
  std::optional<LayerMixes> weights_;
};

}  // namespace

std::vector<AttributionMethod> methods_to_run(const AttributionOptions& options, int64_t tokens) {
  std::vector<AttributionMethod> methods;
  const bool short_enough = tokens <= kMostFlowTokens;
  for (const auto& [name, method] : kAttributionMethodNames) {
    const bool asked =
        std::find(options.methods.begin(), options.methods.end(), method) != options.methods.end();
    if (method == AttributionMethod::kFlow && asked && !short_enough)
      throw UsageError(fmt::format("flow takes at most {} tokens, and the text has {}; leave flow out",
                                   kMostFlowTokens, tokens));
    if (asked || (options.methods.empty() && (method != AttributionMethod::kFlow || short_enough)))
      methods.push_back(method);
  }
  return methods;
}

AttributionReport attribute_text(const ExplainedText& text, const AttributionOptions& options) {
  AttributionReport found = text.known();
  MethodRun run(text, options);
  for (const AttributionMethod method : methods_to_run(options, std::ssize(text.ids()))) {
    found.methods.push_back({.method = method, .scores = run.scores(method)});
    const std::vector<double>& scores = found.methods.back().scores;
    if (!std::all_of(scores.begin(), scores.end(), [](double one) { return std::isfinite(one); }))
      throw Error(fmt::format("{}: an attribution is not finite", name_of(method, kAttributionMethodNames)));
    if (method == AttributionMethod::kIntegratedGradients)
      found.completeness_error =
          std::accumulate(scores.begin(), scores.end(), 0.0) - (found.score - found.replaced_score);
  }
  return found;
}

const std::vector<double>& AttributionReport::of(AttributionMethod method) const {
  for (const MethodScores& one : methods) {
    if (one.method == method) return one.scores;
  }
  throw UsageError(fmt::format("{} was not asked for", name_of(method, kAttributionMethodNames)));
}

AttributionReport heads_attribution(const ModelFolder& folder, const std::string& text,
                                    const AttributionOptions& options) {
  check_settings(options);
  return attribute_text(ExplainedText(folder, text, options), options);
}

AttributionReport heads_attribution(const SentenceModel& model, const std::string& text,
                                    const std::string& second, const AttributionOptions& options) {
  check_settings(options);
  return attribute_text(ExplainedText(model, text, second, options), options);
}

}  // namespace mh
