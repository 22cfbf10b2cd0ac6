// CorpusReader: the blocks of a corpus as a model reads them: tokens, the words that they belong to, trees and alignments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/heads/sites/words.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/sites.h"
#include "multihead/text/text_languages.h"

namespace mh {

/// Dependency trees, and the tokens of their words. Entry i of both is sentence i of a block.
struct GoldTrees {
  std::vector<std::vector<Word>> trees = {};
  std::vector<WordOfToken> word_of_token =
      {};  // an entry for each token that the model reads, a start token too

  bool empty() const { return trees.empty(); }
};

/// Word alignments, and the tokens of their words. Entry i of each list is sentence i of a block.
struct GoldAlignments {
  std::vector<Alignment> alignments = {};
  std::vector<WordOfToken> source_words = {},
                           target_words = {};  // of each token; the target without its end token
  std::vector<int32_t> source_sizes = {}, target_sizes = {};  // in words

  bool empty() const { return alignments.empty(); }
};

/// Some sentences of a corpus as the model reads them. Lines without text are left out.
struct CorpusBlock {
  int64_t first = 0;                // how many sentences came before
  std::vector<int64_t> lines = {};  // of each sentence: its line of the corpus, from 1
  HeadsText text = {};
  InspectedTexts source = {};                        // of a translator with the end token
  InspectedTexts target = {};                        // of a translator, without start and end token
  GoldTrees encoder_trees = {}, decoder_trees = {};  // a causal model is a decoder that reads the source
  GoldAlignments alignments = {};
  bool causal = false;  // of a causal model

  /// Of each sentence: its number in the list that the corpus is, from 0; blank lines count.
  std::vector<int64_t> numbers() const;
  int64_t sentences() const { return static_cast<int64_t>(source.ids.size()); }
  /// The keys of such an attention that are special tokens in sentence i, key 0 left out: [SEP], </s>.
  std::vector<int32_t> separators(AttentionKind kind, size_t i) const;
};

/// Lines of a corpus that are left out for one reason.
struct LeftOutLines {
  int64_t count = 0;
  int64_t first = 0;  // from 1

  void add(int64_t line) {
    if (count++ == 0) first = line;
  }
  /// Tells how many and which is the first, where there are any: "2 lines left out, REASON; the first is line 7".
  void tell(const char* reason, const std::function<void(const std::string&)>& remark) const;
};

class CorpusReader {
 public:
  struct Options {
    bool words = false;      // which word a token belongs to, also where no trees are given (words_in())
    Sites* sites = nullptr;  // of the search
    TextLanguages languages = {};
    /// Called with one line worth knowing: how many lines were cut, which words the tokenizer does not know, and at the end
    /// how many lines were left out though they have a target or a second text.
    std::function<void(const std::string&)> remark = nullptr;
  };
  /// REQUIRES: folder and corpus outlive this. Throws FileError when the folder has no tokenizer, UsageError on languages as
  /// language_pair() (folders/language_codes.h) does.
  CorpusReader(const ModelFolder& folder, HeadsCorpus& corpus, Options options);

  /// Nothing when all lines were given. Throws FormatError when trees or alignments do not fit the text; UsageError when
  /// targets are given to a model that does not translate, or pairs to one that does not read them.
  std::optional<CorpusBlock> next();
  TargetsRead targets_read() const { return targets_read_; }

 private:
  const ModelFolder& folder_;
  HeadsCorpus& corpus_;
  Options options_;
  LanguagePair languages_;
  InspectedTextReader reader_;
  TargetsRead targets_read_ = TargetsRead::kNone;
  int64_t sentences_ = 0, lines_ = 0;
  LeftOutLines half_pairs_;  // that have no source text
};

}  // namespace mh
