#include "multihead/heads/measures/heads_relations.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/io/check_option.h"
#include "multihead/io/lines.h"

namespace mh {
namespace {

/// One half of a corpus.
class HalfCorpus final : public HeadsCorpus {
 public:
  HalfCorpus(HeadsCorpus& whole, CorpusHalf half) : whole_(whole), half_(half) {}

  HeadsText next() override {
    HeadsText kept;
    while (kept.sources.empty()) {
      HeadsText text = whole_.next();
      if (text.sources.empty()) return kept;
      for (size_t i = 0; i < text.sources.size(); ++i) {
        if (is_blank(text.sources[i])) continue;  // read by nobody
        if (!in_half(sentence_++, half_)) continue;
        kept.sources.push_back(std::move(text.sources[i]));
        if (!text.targets.empty()) kept.targets.push_back(std::move(text.targets[i]));
        if (!text.source_trees.empty()) kept.source_trees.push_back(std::move(text.source_trees[i]));
        if (!text.target_trees.empty()) kept.target_trees.push_back(std::move(text.target_trees[i]));
      }
    }
    return kept;
  }
  void restart() override {
    whole_.restart();
    sentence_ = 0;
  }
  std::string name() const override { return whole_.name(); }

 private:
  HeadsCorpus& whole_;
  CorpusHalf half_;
  int64_t sentence_ = 0;
};

/// Of the encoder, else of the decoder.
ProbeScore probe(const ModelFolder& folder, HeadsCorpus& corpus, const RelationsOptions& options,
                 const Model& model) {
  std::vector<Model::Attention> attentions;
  const AttentionKind kind = is_causal(folder) ? AttentionKind::kDecoderSelf : AttentionKind::kEncoderSelf;
  for (Model::Attention& attention : model.attentions()) {
    if (attention.place.kind == kind) attentions.push_back(std::move(attention));
  }
  DependencyProbe learned(std::move(attentions));
  CorpusObserver* const observers[] = {&learned};
  ObserveHeadsOptions observe = options.observe;
  observe.model = &model;
  observe.remark = nullptr;  // said by the first pass
  observe.observe.max_batch_tokens =
      std::min<int64_t>(512, observe.observe.max_batch_tokens);  // it holds all heads' maps
  HalfCorpus taught(corpus, CorpusHalf::kChosenOn), counted(corpus, CorpusHalf::kScoredOn);
  for (int epoch = 0; epoch < options.probe_epochs; ++epoch) {
    taught.restart();
    observe_heads(folder, taught, observers, observe);
  }
  learned.use(DependencyProbe::Use::kCount);
  counted.restart();
  observe_heads(folder, counted, observers, observe);
  return {.words = learned.words(), .right = learned.right(), .heads = learned.heads()};
}

}  // namespace

std::unique_ptr<Model> with_random_queries_and_keys(Model& model, uint64_t seed) {
  uint64_t stream = 0;
  return convert_model(model, [&](const std::string&, const LayerWeights& before) {
    LayerWeights layer = before;
    for (auto& [name, numbers] : layer.values) {
      const bool of_scores = name.starts_with("w_q") || name.starts_with("w_k") || name.starts_with("b_q") ||
                             name.starts_with("b_k") || name.starts_with("c_qk");
      if (!of_scores) continue;
      Random random(seed, stream++);
      float* const all = numbers.view().data;
      for (int64_t i = numbers.rows() * numbers.cols() - 1; i > 0; --i)
        std::swap(all[i], all[random.below(static_cast<uint32_t>(i) + 1)]);
    }
    return layer;
  });
}

RelationsReport heads_relations(const ModelFolder& folder, HeadsCorpus& corpus,
                                const RelationsOptions& options) {
  check_settings(options);
  RelationsReport report;
  RelationScorer scorer;
  CorpusObserver* const observers[] = {&scorer};
  report.read = observe_heads(folder, corpus, observers, options.observe);
  report.chosen = scorer.chosen_and_scored(options.least_support);
  report.all = scorer.scores();
  report.on_chosen = scorer.scores(CorpusHalf::kChosenOn);
  report.on_scored = scorer.scores(CorpusHalf::kScoredOn);
  if (report.all.empty())
    throw UsageError(fmt::format("{} has no dependency trees; give the sentences as CoNLL-U", corpus.name()));
  if (options.probe_epochs > 0 && report.read.sentences < 2)
    throw UsageError(
        "the probe learns from every other sentence and is tried on the rest; give at least two sentences");
  if (options.probe_epochs > 0) report.probe = probe(folder, corpus, options, *folder.model);
  if (!options.random) return report;

  const std::unique_ptr<Model> random = with_random_queries_and_keys(*folder.model, options.seed);
  RelationScorer of_random;
  CorpusObserver* const random_observers[] = {&of_random};
  ObserveHeadsOptions observe = options.observe;
  observe.model = random.get();
  observe.remark = nullptr;
  corpus.restart();
  observe_heads(folder, corpus, random_observers, observe);
  report.random = of_random.chosen_and_scored(options.least_support);
  if (options.probe_epochs > 0) report.random_probe = probe(folder, corpus, options, *random);
  return report;
}

}  // namespace mh
