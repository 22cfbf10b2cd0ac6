// PairsWithoutLinks: the pairs of a corpus with alignments that have no links, so that CorpusReader says which words their tokens
// belong to. Sources without a translation get the model's greedy one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "multihead/folders/language_codes.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/io/lines.h"

namespace mh {

class PairsWithoutLinks final : public HeadsCorpus {
 public:
  /// most: sentences that it gives.
  PairsWithoutLinks(const ModelFolder& folder, HeadsCorpus& pairs, const ObserveHeadsOptions& options,
                    int64_t most)
      : folder_(folder), pairs_(pairs), options_(options), most_(most) {}

  HeadsText next() override {
    HeadsText text = pairs_.next();
    // The rest is read, too: it says whether there is a translation for each line.
    while (left() <= 0 && !text.sources.empty()) text = pairs_.next();
    if (text.sources.empty()) return {};
    cut(text);
    text.alignments.assign(text.sources.size(), {});
    targets_ = text.targets.empty() ? TargetsRead::kGreedy : TargetsRead::kGiven;
    if (text.targets.empty()) text.targets = greedy(text.sources);
    return text;
  }
  TargetsRead targets() const { return targets_; }
  void restart() override {
    pairs_.restart();
    given_ = 0;
  }
  std::string name() const override { return pairs_.name(); }

 private:
  int64_t left() const { return most_ - given_; }

  /// Behind the last sentence that is wanted.
  void cut(HeadsText& text) {
    size_t lines = 0;
    for (; lines < text.sources.size() && left() > 0; ++lines)
      given_ += is_blank(text.sources[lines]) ? 0 : 1;
    const auto shorten = [&](auto& list) { list.resize(std::min(list.size(), lines)); };
    shorten(text.sources);
    shorten(text.targets);
    shorten(text.source_trees);
    shorten(text.target_trees);
  }

  /// As text, of which the words are taken.
  std::vector<std::string> greedy(const std::vector<std::string>& sources) const {
    const LanguagePair languages = language_pair(folder_, options_.languages);
    const InspectedTextReader reader(folder_, nullptr, languages);
    std::vector<std::string> with_words, translations(sources.size());
    std::vector<size_t> lines;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (is_blank(sources[i])) continue;
      with_words.push_back(sources[i]);
      lines.push_back(i);
    }
    const InspectedTexts read = reader.translated(with_words, TextSide::kSource, {}, {.one = "source line"});
    const auto ids = greedy_translations(folder_, read.ids, languages, options_.observe.sites);
    for (size_t i = 0; i < lines.size(); ++i) {
      translations[lines[i]] = folder_.target_tokens().decode_known(ids[i]);
      std::replace(translations[lines[i]].begin(), translations[lines[i]].end(), '\n', ' ');
    }
    return translations;
  }

  const ModelFolder& folder_;
  HeadsCorpus& pairs_;
  const ObserveHeadsOptions& options_;
  int64_t most_, given_ = 0;
  TargetsRead targets_ = TargetsRead::kNone;
};

}  // namespace mh
