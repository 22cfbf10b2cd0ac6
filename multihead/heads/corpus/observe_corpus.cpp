#include "multihead/heads/corpus/observe_corpus.h"

#include <algorithm>
#include <map>
#include <string>

#include "multihead/models/read_lists.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// Collects what one attention shows of itself, and gives it to the observers who want it.
class Collector final : public Sites {
 public:
  Collector(const Model& model, std::span<CorpusObserver* const> observers) : observers_(observers) {
    for (Model::Attention& one : model.attentions()) {
      const bool wanted = std::any_of(observers.begin(), observers.end(),
                                      [&](const CorpusObserver* who) { return who->wants_weights(one); });
      if (wanted) wanted_.emplace(one.name, one);
    }
  }

  void begin(std::span<const int64_t> sentences) { sentences_ = sentences; }

  bool wants(const Site& site) const override {
    if (site.part != SitePart::kWeights && site.part != SitePart::kValues && site.part != SitePart::kHeads)
      return false;
    return wanted_.contains(site.owner);
  }

  Var at(Tape&, const Site& site, const SiteValue& at) override {
    if (site.part == SitePart::kValues) {
      values_ = at.value.value();
    } else if (site.part == SitePart::kWeights) {
      matrices_.push_back(at.value.value());
      keys_ = at.keys;
    } else {
      const Model::Attention& attention = wanted_.find(site.owner)->second;
      const BatchWeights batch{.attention = attention,
                               .sentences = sentences_,
                               .query_offsets = at.rows.offsets,
                               .keys = keys_,
                               .matrices = matrices_,
                               .values = values_,
                               .outputs = at.value.value()};
      for (CorpusObserver* observer : observers_) {
        if (observer->wants_weights(attention)) observer->weights(batch);
      }
      matrices_.clear();
    }
    return at.value;
  }

 private:
  std::span<CorpusObserver* const> observers_;
  std::map<std::string, Model::Attention, std::less<>> wanted_;
  std::span<const int64_t> sentences_;
  // Of the attention that runs.
  std::vector<ConstMatrixView> matrices_;
  std::span<const int32_t> keys_;
  ConstMatrixView values_;
};

}  // namespace

void observe_corpus(const Model& model, std::span<const std::vector<int32_t>> sources,
                    std::span<const std::vector<int32_t>> targets, std::span<CorpusObserver* const> observers,
                    const ObserveOptions& options) {
  const bool part = !options.numbers.empty();  // of a list
  Collector collector(model, observers);
  ListSites listed(options.sites);
  SitesInTurn sites(listed.sites(), collector);
  Tape tape;
  Context context{.tape = tape, .sites = &sites};
  std::vector<int64_t> numbers;
  const BatchOptions plan{.max_tokens = options.max_batch_tokens, .order = BatchOptions::Order::kAsGiven};
  const TokenLists lists{.sources = sources, .targets = targets, .source_types = options.source_types};
  read_lists(model, lists, options.sites, plan, [&](const ListBatch& batch) {
    numbers.clear();
    for (const int64_t i : batch.numbers)
      numbers.push_back(part ? options.numbers[static_cast<size_t>(i)] : i);
    listed.begin(
        part ? ListedBatch{.texts = numbers}
             : ListedBatch{.texts = numbers, .count = std::ssize(sources), .offsets = &batch.offsets});
    collector.begin(batch.source.sentences);
    tape.clear();
    model.read(context, batch.source.view(), targets.empty() ? Sequences() : batch.target.input.view());
    if (options.progress) options.progress(batch.numbers.back() + 1);
  });
}

}  // namespace mh
