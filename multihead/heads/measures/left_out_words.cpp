#include "multihead/heads/measures/left_out_words.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "multihead/evaluate/score.h"
#include "multihead/heads/sites/words.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// A sentence of a block as it is, or without one of its words.
struct LeftOutVariant {
  int64_t sentence = 0;
  int32_t word = -1;  // -1: it is whole
};

/// Makes the rows of the word that each text of a list is without 0.
class WithoutWords final : public Sites {
 public:
  WithoutWords(const std::vector<LeftOutVariant>& variants, const std::vector<WordOfToken>& words)
      : variants_(variants), words_(words) {}

  bool wants(const Site& site) const override {
    return site.part == SitePart::kEmbeddings && site.owner == "encoder";
  }
  bool changes() const override { return true; }

  Var at(Tape& tape, const Site&, const SiteValue& value) override {
    const ConstMatrixView given = value.value.value();
    const MatrixView left = tape.arena().matrix<float>(given.rows, given.cols);
    for (int64_t i = 0; i < given.rows; ++i) std::copy_n(given.row(i), given.cols, left.row(i));
    for (size_t s = 0; s + 1 < value.rows.offsets.size(); ++s) {
      const LeftOutVariant& variant = variants_[static_cast<size_t>(value.rows.list->texts[s])];
      const WordOfToken& words = words_[static_cast<size_t>(variant.sentence)];
      for (size_t token = 0; token < words.size() && variant.word >= 0; ++token) {
        if (words[token] == variant.word)
          std::fill_n(left.row(value.rows.offsets[s] + static_cast<int64_t>(token)), left.cols, 0.0f);
      }
    }
    return tape.constant(left);
  }

 private:
  const std::vector<LeftOutVariant>& variants_;
  const std::vector<WordOfToken>& words_;
};

}  // namespace

std::vector<Tensor> prediction_differences(const LanguageModel& model, const CorpusBlock& block,
                                           const ObserveOptions& options) {
  const GoldAlignments& words = block.alignments;
  std::vector<LeftOutVariant> variants;
  std::vector<std::vector<int32_t>> sources, targets;
  std::vector<int64_t> numbers;  // in the list that the caller's sites count in
  const auto add = [&](size_t sentence, int32_t word) {
    variants.push_back({static_cast<int64_t>(sentence), word});
    sources.push_back(block.source.ids[sentence]);
    targets.push_back(block.target.ids[sentence]);
    numbers.push_back(options.numbers.empty() ? static_cast<int64_t>(sentence) : options.numbers[sentence]);
  };
  std::vector<Tensor> differences;
  for (size_t i = 0; i < words.source_words.size(); ++i) {
    differences.emplace_back(words.target_sizes[i], words.source_sizes[i]);
    const auto read = static_cast<int32_t>(words_read(words.source_words[i]));
    add(i, -1);
    for (int32_t word = 0; word < read; ++word) add(i, word);
  }
  ListSites listed(options.sites, {.texts = numbers});
  WithoutWords without(variants, words.source_words);
  SitesInTurn sites(listed.sites(), without);
  const auto scores =
      score(model, sources, targets, {.max_batch_tokens = options.max_batch_tokens, .sites = &sites});
  size_t whole = 0;
  for (size_t v = 0; v < variants.size(); ++v) {
    if (variants[v].word < 0) {
      whole = v;
      continue;
    }
    const auto sentence = static_cast<size_t>(variants[v].sentence);
    const WordOfToken& target_words = words.target_words[sentence];
    for (size_t token = 0; token < target_words.size(); ++token) {
      if (target_words[token] >= 0)
        differences[sentence](target_words[token], variants[v].word) +=
            scores[whole][token] - scores[v][token];
    }
  }
  return differences;
}

Alignment strongest_differences(const Tensor& differences, float least_fall) {
  Alignment links;
  for (int32_t t = 0; t < differences.rows(); ++t) {
    const float* of_word = differences.view().row(t);
    const float* most = std::max_element(of_word, of_word + differences.cols());
    if (most != of_word + differences.cols() && *most > least_fall)
      links.emplace_back(static_cast<int32_t>(most - of_word), t);
  }
  return links;
}

}  // namespace mh
